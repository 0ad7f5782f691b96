"""Targets: what an operator types for a run is that run, or an error, and never another run."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agents.approval import check
from agents.errors import OperatorError
from agents.layout import Layout
from agents.naming import parse
from agents.store import Store
from tests.fuzz import examples
from tests.fuzz.material import words

ids = st.text("ab01", min_size=4, max_size=6)
runs = st.builds("26-01-{:02d}_1200__{}__{}".format, st.integers(1, 3), st.sampled_from(["fix-it", "fix", "a"]), ids)
pointers = st.sampled_from(["latest", "last-fail", "last-review", "last-done", "ab01"])


@st.composite
def worlds(draw):
    """Runs, what their ids lead to, and where the pointers point: mostly as it should be."""
    names = draw(st.lists(runs, min_size=1, max_size=5, unique_by=lambda name: name.rpartition("__")[2]))
    strangers = draw(
        st.lists(
            words.filter(
                lambda name: (
                    name
                    and len(name.encode("utf-8", "replace")) < 200
                    and not {"/", "\0"} & {*name}
                    and name not in {".", ".."}
                )
            ),
            max_size=2,
        )
    )
    led = {name.rpartition("__")[2]: name for name in names}
    led |= draw(st.dictionaries(ids, runs | words, max_size=2))
    pointed = draw(
        st.dictionaries(pointers, st.sampled_from(names) | runs | st.sampled_from(["..", "/etc", "x"]), max_size=3)
    )
    some = st.sampled_from([*names, *led, *pointed])
    target = draw(some | some.flatmap(lambda each: st.integers(0, len(each)).map(lambda end: each[:end])) | words | ids)
    return names, strangers, led, pointed, target


def build(root, names, strangers, led, pointed):
    layout = Layout(root)
    for folder in (layout.runs, layout.ids, layout.pointers):
        folder.mkdir(parents=True)
    for name in names:
        layout.box(name).path.mkdir()
        layout.box(name).state.write_text("{}")
    for name in strangers:
        (layout.runs / name.encode("utf-8", "replace").decode()).mkdir(exist_ok=True)
    for short, name in led.items():
        (layout.ids / short).write_text(name, "utf-8", "replace")
    for pointer, name in pointed.items():
        link = layout.latest if pointer == "latest" else layout.pointers / pointer
        link.symlink_to(f"runs/{name}" if pointer == "latest" else f"../runs/{name}")
    return Store(layout)


@examples(50)
@given(worlds())
def test_what_was_typed_is_that_run_or_an_error(world):
    """T146: a pointer, a name, an id, or the beginning of one only."""
    names, strangers, led, pointed, target = world
    with tempfile.TemporaryDirectory() as folder:
        store = build(Path(folder), names, strangers, led, pointed)
        try:
            found = store.resolve(target)
        except OperatorError:
            return
        assert parse(found)
        assert found in names
        short = {name: name.rpartition("__")[2] for name in names}
        if target in pointed:
            assert found == pointed[target] or (pointed[target] not in names and target in {short[found], "latest"})
        elif target in names or target in short.values():
            assert target in {found, short[found]}
        elif target in led:
            assert found == led[target] or found.startswith(target)
        elif target != "latest":
            fitting = [name for name in names if name.startswith(target) or short[name].startswith(target)]
            assert fitting == [found]


@examples(100)
@given(sha=st.text("0123456789abcdef", min_size=64, max_size=64), data=st.data())
def test_an_approval_is_the_beginning_of_its_own_hash_and_nothing_else(sha, data):
    """T149: at least eight digits, as they are."""
    given_ = data.draw(
        st.integers(0, 70).map(lambda end: sha[:end])
        | st.text("0123456789abcdefABCDEF ", max_size=70)
        | words
        | st.tuples(st.integers(0, 64), words).map(lambda pair: sha[: pair[0]] + pair[1])
        | st.integers(1, 64).map(lambda start: sha[start:])
    )
    try:
        check(given_, sha)
    except OperatorError:
        return
    word = given_.strip().lower()
    assert len(word) >= 8
    assert sha.startswith(word)
