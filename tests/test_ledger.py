"""The chain: whatever is changed in it is found, and what a crash leaves at its end is told from that."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.ledger import GENESIS, LONGEST, Head, check, compare, digest, link, read, torn

TIME = "2026-03-01T09:15:00.000Z"


def chain(*facts: dict[str, Any]) -> list[bytes]:
    """The lines (without their ends) of a ledger with one entry for each of *facts*."""
    head, lines = Head(), []
    for each in facts:
        line, head = link(head, time=TIME, event="run.started", run="r", facts=each)
        lines.append(line.removesuffix(b"\n"))
    return lines


FIVE = chain(*({"n": n, "task": "find it"} for n in range(5)))
HEAD = Head(5, digest(FIVE[-1]))


def found(lines: list[bytes], anchor: Head = HEAD) -> int | None:
    """Number of the line that `agent verify` would name: by the chain, else by the *anchor*; None where all is well."""
    flaw = check(lines)[0] or compare(anchor, lines, "the anchor")
    return flaw.line if flaw else None


# --- links ------------------------------------------------------------------------------------------------------------


def test_an_entry_names_the_line_before_it_by_its_bytes() -> None:
    first, second = (json.loads(line) for line in FIVE[:2])
    assert (first["seq"], first["prev"]) == (1, GENESIS)
    assert (second["seq"], second["prev"]) == (2, digest(FIVE[0]))
    assert {"seq", "time", "event", "run", "facts", "prev"} == set(second)


def test_a_whole_chain_has_no_flaw() -> None:
    flaw, head, entries = check(FIVE)
    assert (flaw, head) == (None, HEAD)
    assert [entry["facts"]["n"] for entry in entries] == list(range(5))
    assert check([]) == (None, Head(), [])
    assert compare(HEAD, FIVE, "x") is None
    assert compare(Head(), [], "x") is None


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.dictionaries(st.text(max_size=8), st.text(max_size=30) | st.integers() | st.none(), max_size=4), max_size=6
    )
)
def test_any_facts_make_one_line_each(facts: list[dict[str, Any]]) -> None:
    lines = chain(*facts)
    assert all(line.isascii() and b"\n" not in line and len(line.splitlines()) == 1 for line in lines)
    flaw, head, entries = check(lines)
    assert (flaw, head.seq) == (None, len(facts))
    assert [entry["facts"] for entry in entries] == facts


@pytest.mark.parametrize(
    ("facts", "kept"),
    [
        ({"id": "a1b2", "model": "A" * 10**6}, {"id": "a1b2", "cut": 1}),
        ({"id": "a1b2", "usage": {f"k{n}": n for n in range(50_000)}, "status": "DONE"}, {"id": "a1b2", "status": "DONE", "cut": 1}),
        ({"x" * 10**6: 1}, {"cut": 1}),
        ({"wide": "\u2028" * 20_000, "id": "a1b2"}, {"id": "a1b2", "cut": 1}),
    ],
)  # fmt: skip
def test_no_line_is_longer_than_an_append_looks_back(facts: dict[str, Any], kept: dict[str, Any]) -> None:
    """C15: one entry that hides its own beginning would end every later append."""
    line, head = link(Head(), time=TIME, event="run.finished", run="r", facts=facts)
    assert len(line) <= LONGEST
    assert json.loads(line)["facts"] == kept
    assert head == Head(1, digest(line.rstrip(b"\n")))


def test_many_facts_are_cut_until_they_fit() -> None:
    facts = {f"k{n:05}": "v" * 20 for n in range(20_000)}
    line, _ = link(Head(), time=TIME, event="run.finished", run="r", facts=facts)
    kept = json.loads(line)["facts"]
    assert len(line) <= LONGEST
    assert kept.pop("cut") == len(facts) - len(kept)
    assert 500 < len(kept) < len(facts)


# --- what was changed -------------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_changed_byte_is_found_at_or_before_the_next_line(data: st.DataObject) -> None:
    """T152: earlier bytes cannot change unseen."""
    number = data.draw(st.integers(1, 5))
    line = FIVE[number - 1]
    place = data.draw(st.integers(0, len(line) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda each: each not in {line[place], ord("\n")}))
    changed = line[:place] + bytes([byte]) + line[place + 1 :]
    flawed = found([*FIVE[: number - 1], changed, *FIVE[number:]])
    assert flawed is not None
    assert max(1, number - 1) <= flawed <= number + 1


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 4), st.binary(min_size=1, max_size=4).filter(lambda each: b"\n" not in each), st.data())
def test_added_bytes_are_found_even_if_they_mean_nothing(place: int, more: bytes, data: st.DataObject) -> None:
    """T152: a chain over parsed JSON would miss an added blank."""
    cut = data.draw(st.integers(0, len(FIVE[place])))
    changed = FIVE[place][:cut] + more + FIVE[place][cut:]
    assert found([*FIVE[:place], changed, *FIVE[place + 1 :]]) in {place, place + 1, place + 2}


CHANGED = {
    "a blank": lambda line: line.replace(b":", b": ", 1),
    "a fact": lambda line: line.replace(b"find it", b"find 17"),
    "the time": lambda line: line.replace(b"2026", b"2025"),
    "the link": lambda line: line[:-3] + (b"0" if line[-3:-2] != b"0" else b"1") + line[-2:],
    "the number": lambda line: line.replace(b'"seq":', b'"seq":1', 1),
    "everything": lambda _: b"{}",
    "all of it": lambda _: b"",
}


@pytest.mark.parametrize("number", [2, 3, 4])
@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED.keys())
def test_the_line_that_was_changed_is_the_one_that_is_named(number: int, change: Any) -> None:
    """T152: `agent verify` names the first bad entry."""
    lines = [*FIVE[: number - 1], change(FIVE[number - 1]), *FIVE[number:]]
    assert lines != FIVE
    flaw, head, entries = check(lines)
    assert flaw is not None
    assert (flaw.line, flaw.kind) == (number, "tampered")
    assert str(number) in flaw.message
    assert head.seq == len(entries) <= number


def test_an_entry_that_was_forged_with_its_followers_is_found_by_the_anchor() -> None:
    """T152: whoever recomputes the chain still has another head."""
    forged = chain(*({"n": n, "task": "find it" if n != 2 else "steal it"} for n in range(5)))
    assert check(forged)[0] is None
    assert found(forged) == 5
    assert found(chain(*({"n": n} for n in range(7)))) == 5


@pytest.mark.parametrize("place", range(5))
def test_a_missing_line_is_found(place: int) -> None:
    flawed = found(FIVE[:place] + FIVE[place + 1 :])
    assert flawed == (place + 1 if place < 4 else 0)


@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("line", [FIVE[0], FIVE[4], b"{}", b"", b"not json"])
def test_an_added_line_is_found(place: int, line: bytes) -> None:
    lines = [*FIVE[:place], line, *FIVE[place:]]
    flawed = check(lines)[0]
    assert flawed is not None
    assert flawed.line in {place, place + 1, place + 2}


@settings(max_examples=60, deadline=None)
@given(st.permutations(FIVE).filter(lambda order: order != FIVE))
def test_another_order_is_found_where_it_begins(order: list[bytes]) -> None:
    first = next(place for place, line in enumerate(order, 1) if line != FIVE[place - 1])
    assert found(order) == first


@pytest.mark.parametrize("left", range(5))
def test_a_cut_end_is_told_from_a_change(left: int) -> None:
    """Truncation is only visible from outside: the anchor remembers more than there is."""
    assert check(FIVE[:left])[0] is None
    flaw = compare(HEAD, FIVE[:left], "the git ref")
    assert flaw is not None
    assert (flaw.line, flaw.kind) == (0, "truncated")
    assert f"{5 - left} entries" in flaw.message
    assert "the git ref" in flaw.message


def test_a_ledger_that_grew_since_the_anchor_is_whole() -> None:
    for count in range(6):
        anchor = check(FIVE[:count])[1]
        assert compare(anchor, FIVE, "x") is None


def test_the_anchor_names_the_line_that_differs() -> None:
    flaw = compare(Head(3, "f" * 64), FIVE, "the user's state folder")
    assert flaw is not None
    assert (flaw.line, flaw.kind) == (3, "tampered")


# --- what a crash leaves ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "bytes_torn"),
    [
        (b"", 0),
        (b"a\n", 0),
        (b"a\nb\n", 0),
        (b"a\nb", 1),
        (b"only", 4),
        (b"a\n\0\0\0", 3),
        (b"\0" * 10, 10),
        (b'a\n{"seq":2,', 9),
        (b"a\n\r", 1),
        ("a\n\u2028".encode(), 3),
    ],
)
def test_a_torn_tail_is_measured(data: bytes, bytes_torn: int) -> None:
    """C07: C15: a write that was cut off, and the zeros of a power cut."""
    assert torn(data) == bytes_torn


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 4), st.data())
def test_a_cut_anywhere_leaves_a_chain_that_goes_on(place: int, data: st.DataObject) -> None:
    """C07: after the repair the next entry links to the last whole line."""
    whole = b"".join(line + b"\n" for line in FIVE)
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    repaired = cut[: len(cut) - torn(cut)].split(b"\n")[:-1]
    flaw, head, _ = check(repaired)
    assert flaw is None
    line, _ = link(head, time=TIME, event="run.crashed", run="r", facts={"recovered": True, "place": place})
    assert check([*repaired, line.rstrip(b"\n")])[0] is None


NO_ENTRIES = [b"", b"{", b"[]", b"null", b"3", b'"seq"', b"{}", b'{"seq":"1"}', b'{"seq":1.0}', b"\xff", b"\0\0", b"[" * 100_000, b'{"seq":' + b"9" * 5000 + b"}"]  # fmt: skip


@pytest.mark.parametrize("line", NO_ENTRIES, ids=range(len(NO_ENTRIES)))
def test_what_is_no_entry_is_named_as_such(line: bytes) -> None:
    assert read(line) is None
    flaw = check([*FIVE[:2], line])[0]
    assert flaw is not None
    assert (flaw.line, flaw.message) == (3, "Line 3 is not an entry.")


@pytest.mark.parametrize("head", [Head(), HEAD, Head(10**9, "ab" * 32)])
def test_an_anchor_reads_back(head: Head) -> None:
    assert Head.from_json(head.to_json()) == head


NO_HEADS = [
    None, b"", b"{", b"[]", b"null", b"5", b'{"seq":1}', b'{"sha256":"x"}', b'{"seq":null,"sha256":"x"}', b'{"seq":"1","sha256":"x"}',
    b'{"seq":-5,"sha256":"x"}', b'{"seq":1.5,"sha256":"x"}', b'{"seq":true,"sha256":"x"}', b'{"seq":Infinity,"sha256":"x"}',
    b'{"seq":1,"sha256":5}', b"\xff\xfe", b"[" * 100_000, b'{"seq":' + b"9" * 5000 + b',"sha256":"x"}',
]  # fmt: skip


@pytest.mark.parametrize("data", NO_HEADS, ids=range(len(NO_HEADS)))
def test_an_anchor_that_is_none_is_no_witness(data: bytes | None) -> None:
    """The file and the ref are foreign input: a witness that cannot be read must not end the check."""
    assert Head.from_json(data) is None
