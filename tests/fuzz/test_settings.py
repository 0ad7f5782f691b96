"""Settings: whatever stands in agent.yaml, its variables and the flags, it is a Config or one sentence."""

from __future__ import annotations

import math

import yaml
from hypothesis import given
from hypothesis import strategies as st

from agents.config import Config, resolve
from agents.errors import OperatorError
from essentials import records
from tests.fuzz import examples
from tests.fuzz.material import damaged, json_values, words

NAMES = [field.name for field in records.fields(Config)]
names = st.sampled_from(NAMES) | words
values = (
    json_values
    | st.integers()
    | st.floats()
    | st.sampled_from(["5m", "-1s", "1e400h", "9" * 400, "2GiB", "on", "full"])
)
files = (
    st.dictionaries(names, values, max_size=5).map(lambda told: yaml.safe_dump(told, allow_unicode=True))
    | st.dictionaries(names, words, max_size=4).map(
        lambda told: "".join(f"{key}: {value}\n" for key, value in told.items())
    )
    | words
    | st.sampled_from(
        [
            "&a [*a]",
            "a: &a {<<: *a}",
            "!!python/object:os.system {}",
            "? [x]\n: y",
            "timeout: !!binary eA==",
            "- " * 3000,
            "[" * 3000,
        ]
    )
    | st.dictionaries(names, values, max_size=5)
    .map(yaml.safe_dump)
    .map(str.encode)
    .flatmap(damaged)
    .map(lambda data: data.decode(errors="replace"))
)


def attempt(flags, environ, file, own):
    """The Config, or None where there is none, and then because of one sentence that says where."""
    try:
        return resolve(flags, environ, file, own=own)
    except OperatorError as why:
        said = why.message
    assert said
    assert "\n" not in said
    return None


@examples(120)
@given(file=files, own=st.none() | files)
def test_any_file_is_settings_or_one_sentence(file, own):
    """T135: no text of a stranger's repository ends in a traceback."""
    config = attempt({}, {}, file, own)
    if config is not None:
        assert isinstance(config, Config)
        told = [getattr(config, name) for name in NAMES]
        assert all(not isinstance(value, float) or math.isfinite(value) for value in told)


@examples(60)
@given(
    flags=st.dictionaries(st.sampled_from(NAMES), st.none() | st.text(max_size=12) | st.sampled_from(["5m", "1GiB", "none", "3"]), max_size=3),
    environ=st.dictionaries(st.sampled_from(NAMES).map(lambda name: f"AGENT_BOX_{name.upper()}") | words, words, max_size=3),
)  # fmt: skip
def test_any_flags_and_variables_are_settings_or_one_sentence(flags, environ):
    """T135: nor does what was typed."""
    config = attempt(flags, environ, None, None)
    if config is not None and not flags and not any(name.startswith("AGENT_BOX_") for name in environ):
        assert config == Config()
