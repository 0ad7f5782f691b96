"""The environment's settings: what cannot hold together is refused with one sentence."""

from __future__ import annotations

import json

import pytest

from hollow.substrate.settings import LOCKS, PATH_OUT, Contradiction, Settings, read


def test_nothing_given_is_the_seeds_constants() -> None:
    assert read("") == read("{}") == Settings()
    assert dict(Settings().locks) == {"synthesize_capability": 0.55, "fs_write": 0.75, "fs_edit": 0.75}


@pytest.mark.parametrize("name", sorted(PATH_OUT))
def test_what_must_stay_open_cannot_be_locked(name: str) -> None:
    """T59: a configuration that locks a path-out capability is refused."""
    with pytest.raises(Contradiction, match=f"{name} must stay open"):
        read(json.dumps({"locks": {**LOCKS, name: 0.9}}))


@pytest.mark.parametrize(
    "given",
    [
        "[]", "{", "3", '{"locks": 3}', '{"locks": {"fs_write": 0}}', '{"locks": {"fs_write": 1.1}}',
        '{"locks": {"fs_write": true}}', '{"locks": {"fs_write": "high"}}', '{"custom_stressors": "forget"}',
        '{"unheard": 1}', '{"step_seconds": 0}', '{"step_seconds": "long"}', '{"strict_tools": 1}', '{"research": "docs"}',
        '{"max_steps": true}',
    ],
)  # fmt: skip
def test_nonsense_is_one_sentence(given: str) -> None:
    with pytest.raises(Contradiction) as caught:
        read(given)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_what_is_given_counts() -> None:
    made = read('{"locks": {"fs_write": 0.5}, "research": ["docs"], "step_seconds": 0.5}')
    assert (dict(made.locks), made.research, made.step_seconds) == ({**LOCKS, "fs_write": 0.5}, ("docs",), 0.5)
