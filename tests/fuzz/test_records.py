"""Records: state, envelope, ledger and anchors after any accident are read as they are, or said to be damaged."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path

import yaml
from hypothesis import given
from hypothesis import strategies as st

from agents import attempts, ledger, views
from agents.errors import BoxError, Tampered
from agents.layout import Layout
from agents.ledger import Head
from agents.model import RunMeta, RunState
from agents.store import Store
from tests import replays
from tests.fuzz import examples
from tests.fuzz.material import damaged, json_values, words
from tests.support.plans import planned

STATES = [path.read_bytes() for path in sorted(replays.FOLDER.glob("*/*/state.json"))]
METAS = [path.read_bytes() for path in sorted(replays.FOLDER.glob("*/*/meta.yaml"))]
LEDGERS = [path.read_bytes() for path in sorted(replays.FOLDER.glob(f"*/{replays.LEDGER}"))]
NAME = "26-01-01_1200__x__a1b2"


def read(look):
    """What *look* gives, or None where it says in one line that somebody has been at it."""
    try:
        return look()
    except Tampered as why:
        said = why.message
    assert "\n" not in said
    return None


@contextlib.contextmanager
def box(state=b"{}", meta=b"{}"):
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Layout(Path(folder)))
        store.box(NAME).path.mkdir(parents=True)
        store.box(NAME).state.write_bytes(state)
        store.box(NAME).meta.write_bytes(meta)
        yield store


@examples(80)
@given(
    data=st.sampled_from(STATES).flatmap(damaged)
    | json_values.map(lambda value: json.dumps(value).encode())
    | st.binary(max_size=60)
)
def test_a_damaged_state_is_a_state_or_tampering(data):
    """C29: cut, flipped, doubled, moved, zeroed."""
    with box(state=data) as store:
        state = read(lambda: store.load(NAME))
    assert state is None or RunState.from_json(state.to_json()) == state


@examples(60)
@given(
    data=st.sampled_from(METAS).flatmap(damaged)
    | json_values.map(lambda value: yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "replace"))
    | st.binary(max_size=60)
)
def test_a_damaged_envelope_is_an_envelope_or_tampering(data):
    """T144: and what was read can be written and read again."""
    with box(meta=data) as store:
        meta = read(lambda: store.meta(NAME))
    assert meta is None or RunMeta.from_dict(json.loads(json.dumps(meta.to_dict()))) == meta


@examples(20)
@given(task=words.filter(str.strip))
def test_any_task_comes_back_from_its_envelope(task):
    """T122: to the character, whatever YAML makes of such."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Layout(Path(folder)))
        store.prepare()
        try:
            made = planned(task=task)
        except BoxError:
            return
        store.claim(made.meta, made.state, {}).release()
        assert store.meta(made.meta.run_name) == made.meta
        assert store.load(made.meta.run_name) == made.state


@examples(80)
@given(pair=st.sampled_from(LEDGERS).flatmap(lambda whole: st.tuples(st.just(whole), damaged(whole))))
def test_a_damaged_ledger_is_read_and_its_first_bad_line_named(pair):
    """T152: the chain breaks where it was changed, and whoever reads on does so without a fault."""
    whole, changed = pair
    lines = changed[: len(changed) - ledger.torn(changed)].split(b"\n")[:-1]
    true = whole.split(b"\n")[:-1]
    flaw, head, entries = ledger.check(lines)
    same = next(
        (at for at, (one, other) in enumerate(zip(lines, true, strict=False)) if one != other),
        min(len(lines), len(true)),
    )
    if lines != true[: len(lines)]:
        # A line that was changed shows at the next one at the latest; the very last has nothing behind it but an anchor.
        assert flaw is not None or (
            same == len(lines) - 1 and ledger.compare(Head(len(true), ledger.digest(true[-1])), lines, "x")
        )
        assert flaw is None or same <= flaw.line <= same + 2
    else:
        assert (flaw, head.seq) == (None, len(lines))
    read = [entry for line in lines if (entry := ledger.read(line))]
    assert isinstance(views.fold(read), list)
    assert len(entries) <= len(lines)
    for entry in read:
        assert isinstance(attempts.told([entry]), list)


@examples(60)
@given(
    data=st.binary(max_size=80)
    | json_values.map(lambda value: json.dumps(value).encode())
    | st.sampled_from([Head(3, "a" * 64).to_json()]).flatmap(damaged)
)
def test_any_anchor_is_a_head_or_none(data):
    """T152: an anchor is foreign input too."""
    head = Head.from_json(data)
    assert head is None or (head.seq >= 0 and Head.from_json(head.to_json()) == head)
