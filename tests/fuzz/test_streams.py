"""Streams: whatever an agent says, and in whatever pieces it comes, the same is known, and what is known can be kept."""

from __future__ import annotations

import itertools
import json
import tempfile
from functools import reduce as fold
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agents import facts, ledger, plan, settle
from agents.events import Progress, decode, reduce
from agents.follower import Follower
from agents.layout import Box
from agents.loops import Loops
from agents.model import Actor, RunState
from agents.pump import Ending
from agents.rereading import attentive, reread
from essentials import records
from tests.fuzz import examples
from tests.fuzz.material import DIALECTS, streams
from tests.support.plans import planned

dialects = st.sampled_from(sorted(DIALECTS)).map(DIALECTS.__getitem__)
cuts = st.lists(st.floats(0, 1), max_size=5)


def kept(progress: Progress) -> Progress:
    """What of *progress* reaches the record; what is shown while it runs depends on when one looks."""
    return records.replace(progress, in_flight=None, said="")


@examples(120)
@given(data=streams, dialect=dialects, cuts=cuts)
def test_any_pieces_lead_to_the_same(data, dialect, cuts):
    """T135: how a pipe's bytes were cut into reads is nowhere to be seen in what a run came to."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.jsonl"
        path.touch()
        follower, progress = Follower(path, dialect), Progress()
        places = sorted({int(cut * len(data)) for cut in cuts} | {0, len(data)})
        with path.open("ab", buffering=0) as file:
            for start, end in itertools.pairwise(places):
                file.write(data[start:end])
                progress = fold(reduce, follower.advance(), progress)
                follower.rest()
        progress = fold(reduce, follower.finish(), progress)
        lines = follower.lines
        follower.close()
        whole = reread(path, dialect)
        assert (kept(progress), lines) == (kept(whole.progress), whole.lines)


@examples(60)
@given(data=streams, dialect=dialects)
def test_a_short_stream_is_read_as_by_one_who_reads_everything(data, dialect):
    """P14: what is passed over for want of time is passed over in floods alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.jsonl"
        path.write_bytes(data)
        usual, every = reread(path, dialect), reread(path, attentive(dialect))
    assert kept(usual.progress) == kept(every.progress)


@examples(80)
@given(
    data=streams,
    dialect=dialects,
    code=st.none() | st.integers(-64, 255),
    by=st.sampled_from([Actor.OWNER, Actor.WATCHDOG]),
)
def test_what_a_run_came_to_can_be_kept_whatever_was_said(data, dialect, code, by):
    """T135: a state that reads back, reports that are text, ledger lines that are whole."""
    made = planned()
    with tempfile.TemporaryDirectory() as folder:
        box = Box(Path(folder))
        path = box.path / "stream.jsonl"
        path.write_bytes(data)
        heard = reread(path, dialect)
        ending = Ending(exit_code=code, progress=heard.progress, lines=heard.lines)
        written = settle.reports(box, made.meta, ending, heard.answer)
    outcome = settle.decide(ending, dialect)
    state = settle.ended(
        made.state, made.meta, by, outcome, ending, patch=None, at="2026-01-01T00:00:00Z", artifact=None
    )
    assert RunState.from_json(state.to_json()) == state
    assert all(text.decode().isprintable() or "\n" in text.decode() for text in written.values())
    entries = [*facts.copied(heard.progress.facts), ("run.finished", plan.facts(made.meta, state))]
    for event, told in entries:
        line, _ = ledger.link(ledger.Head(), time="t", event=event, run="r", facts=ledger.bounded(told))
        assert (line.count(b"\n"), line.isascii(), len(line) <= ledger.LONGEST + 1) == (1, True, True)
        assert ledger.read(line)["event"] == event


@examples(60)
@given(data=streams, dialect=dialects, after=st.integers(0, 4))
def test_looking_for_circles_never_fails_and_stays_small(data, dialect, after):
    """P12: a value that is bounded whatever is heard."""
    loops = Loops(after=after)
    for number, line in enumerate(data.split(b"\n") * 3):
        loops = loops.heard(decode(line, dialect), float(number))
        if loops.is_suspicious:
            loops, circle = loops.judged(None)
            assert circle is None or (circle.isprintable() and len(circle) < 1000)
        assert len(loops.pending) <= 16
    json.dumps([len(loops.actions.recent), len(loops.words.recent)])
