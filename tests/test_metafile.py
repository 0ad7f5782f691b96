"""meta.yaml is YAML to everybody, and read without a YAML parser where it is as we write it."""

from __future__ import annotations

import math

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import metafile
from agents.errors import Tampered

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), TEXT)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3), st.dictionaries(TEXT, SCALARS, max_size=3))
KEYS = st.from_regex(r"[a-z][a-z_]{3,8}", fullmatch=True).filter(lambda key: key not in {"null", "true", "false"})


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=5))
def test_what_is_written_is_yaml_and_reads_the_same_both_ways(values):
    data = metafile.dump(values)
    assert metafile.load(data, "x") == values
    for loader in {yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)}:
        assert yaml.load(data, Loader=loader) == values


@pytest.mark.parametrize("char", [*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA1)), "\u2028", "\u2029", "\ufeff",
                                  "\ufffe", "\uffff", "\U0001f600", "#", ":", "- ", "'", '"', "\\"], ids=ascii)  # fmt: skip
def test_every_odd_character_survives(char):
    values = {"task": f"a{char}b", "argv": [char]}
    data = metafile.dump(values)
    assert metafile.load(data, "x") == yaml.safe_load(data) == values


def test_bytes_of_the_command_line_that_are_no_text_are_replaced():
    assert metafile.load(metafile.dump({"task": "a\udcffb"}), "x") == {"task": "a?b"}


OTHERS = {
    b"run_name: x\ntype: scout\ntools:\n- a\n- b\n": {"run_name": "x", "type": "scout", "tools": ["a", "b"]},
    b"# by hand\ntask: why is it slow\n": {"task": "why is it slow"},
    b"task: 'it''s'\nbudget: 1.5\n": {"task": "it's", "budget": 1.5},
    b'task: "first"\ntask: "second"\n': {"task": "second"},
    b"seen: .nan\n": {"seen": math.nan},
    b"on: 1\n": {True: 1},
    b'a: "\\x41"\n': {"a": "A"},
}


@pytest.mark.parametrize("data", OTHERS, ids=ascii)
def test_what_other_hands_wrote_is_read_as_yaml(data):
    assert repr(metafile.load(data, "x")) == repr(OTHERS[data])


@pytest.mark.parametrize("data", [b"", b"- a\n", b"a: [", b"\xff\xfe\xff", b"word", b"a: !!python/name:os.system\n", b"a: &x 1\nb: *y\n",
                                  b"a: " + b"[" * 100_000])  # fmt: skip
def test_what_is_no_mapping_is_tampered_with(data):
    with pytest.raises(Tampered, match=r"meta\.yaml of x"):
        metafile.load(data, "x")
