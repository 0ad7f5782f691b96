"""The vocabulary of runs: the lifecycle law, the two files that every release can read, errors, paths and instants."""

from __future__ import annotations

import itertools
import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agents import naming
from agents.errors import AgentError, BoxError, HostError, OperatorError, Tampered
from agents.layout import EVIDENCE, Layout
from agents.model import (
    HOST_FAILURES,
    TRANSITIONS,
    Actor,
    Failure,
    FailureKind,
    IllegalStep,
    Phase,
    RunMeta,
    RunState,
    Status,
    is_terminal,
    step,
)
from agents.times import Clock, epoch, iso
from essentials import records
from tests.support.plans import planned

COMPAT = Path(__file__).parent / "compat"
STATES = sorted(COMPAT.glob("state_v*.json"))
METAS = sorted(COMPAT.glob("meta_v*.yaml"))

# The lifecycle once more, drawn by hand from the design's picture: who may go where. Everything else is forbidden.
OWNER, WATCHDOG, HUMAN = Actor.OWNER, Actor.WATCHDOG, Actor.HUMAN
LAW = {
    ("ACTIVE", "REVIEW"): {OWNER, WATCHDOG},
    ("ACTIVE", "DONE"): {OWNER, WATCHDOG},
    ("ACTIVE", "CRASHED"): {OWNER, WATCHDOG},
    ("ACTIVE", "STALLED"): {OWNER, WATCHDOG},
    ("ACTIVE", "STOPPED"): {OWNER, HUMAN},
    ("STALLED", "ACTIVE"): {OWNER, HUMAN},
    ("STALLED", "CRASHED"): {OWNER, WATCHDOG},
    ("STALLED", "DONE"): {OWNER},
    ("STALLED", "REVIEW"): {OWNER},
    ("STALLED", "STOPPED"): {OWNER, HUMAN},
    ("STALLED", "REJECTED"): {HUMAN},
    ("CRASHED", "ACTIVE"): {HUMAN},
    ("CRASHED", "REJECTED"): {HUMAN},
    ("STOPPED", "ACTIVE"): {HUMAN},
    ("STOPPED", "REJECTED"): {HUMAN},
    ("REVIEW", "ACTIVE"): {HUMAN},
    ("REVIEW", "MERGING"): {HUMAN},
    ("REVIEW", "REJECTED"): {HUMAN},
    ("MERGING", "MERGED"): {HUMAN, WATCHDOG},
    ("MERGING", "REVIEW"): {HUMAN, WATCHDOG},
    ("MERGED", "REVIEW"): {HUMAN},
}
# Where a run that is not ACTIVE can come from in one step, drawn by hand as well.
REJECTABLE = {Status.REVIEW, Status.CRASHED, Status.STALLED, Status.STOPPED}
TRIPLES = list(itertools.product(Status, Status, Actor))


# --- the law ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("start", "to", "actor"), TRIPLES, ids=["-".join(map(str, each)) for each in TRIPLES])
def test_a_step_is_possible_exactly_where_the_law_has_it(start: Status, to: Status, actor: Actor) -> None:
    state = RunState(status=start, revision=3, notes=("kept",))
    if actor in LAW.get((start.value, to.value), ()):
        assert step(state, to, actor, exit_code=5) == records.replace(state, status=to, exit_code=5)
        return
    with pytest.raises(IllegalStep) as caught:
        step(state, to, actor)
    assert {str(start), str(to), str(actor)} <= set(caught.value.message.rstrip(".").split())
    assert isinstance(caught.value, HostError)


def test_the_table_has_no_row_cell_or_actor_that_the_law_lacks() -> None:
    drawn = {
        (start.value, to.value): set(actors) for start, row in TRANSITIONS.items() for to, actors in row.items()
    }  # fmt: skip
    assert drawn == LAW
    assert set(TRANSITIONS) == set(Status)


def test_a_run_is_over_where_it_is_done_merged_or_rejected() -> None:
    """A merge counts although `undo` leads back from it: what it left behind is in git, not in the box."""
    over = {status for status in Status if is_terminal(status)}
    assert over == {Status.DONE, Status.MERGED, Status.REJECTED}
    assert {status for status in over if TRANSITIONS[status]} == {Status.MERGED}
    assert TRANSITIONS[Status.MERGED] == {Status.REVIEW: {HUMAN}}


def test_every_status_can_be_reached() -> None:
    reached, edge = {Status.ACTIVE}, {Status.ACTIVE}
    while edge:
        edge = {to for start in edge for to in TRANSITIONS[start]} - reached
        reached |= edge
    assert reached == set(Status)


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        TRANSITIONS[Status.DONE] = {}  # type: ignore[index]


class Lifecycle(RuleBasedStateMachine):
    """Random steps by random actors: what holds whatever way a run takes."""

    def __init__(self) -> None:
        super().__init__()
        self.state = RunState()
        self.trail = [Status.ACTIVE]
        self.by: list[Actor] = []

    @rule(to=st.sampled_from(Status), actor=st.sampled_from(Actor))
    def any_step(self, to: Status, actor: Actor) -> None:
        before = self.state
        try:
            self.state = step(self.state, to, actor)
        except IllegalStep:
            assert self.state is before
        else:
            self.trail.append(to)
            self.by.append(actor)

    @precondition(lambda self: TRANSITIONS[self.state.status])
    @rule(data=st.data())
    def a_legal_step(self, data: st.DataObject) -> None:
        to, actors = data.draw(st.sampled_from(sorted(TRANSITIONS[self.state.status].items())))
        actor = data.draw(st.sampled_from(sorted(actors)))
        self.state = step(self.state, to, actor)
        self.trail.append(to)
        self.by.append(actor)

    @rule()
    def through_the_disk(self) -> None:
        self.state = RunState.from_json(self.state.to_json())

    def steps(self) -> list[tuple[Status, Status, Actor]]:
        """Every step so far: from where, to where, by whom."""
        return list(zip(self.trail, self.trail[1:], self.by, strict=False))

    @invariant()
    def nothing_follows_an_end_but_the_undoing_of_a_merge(self) -> None:
        after = [each for each in self.steps() if is_terminal(each[0])]
        assert set(after) <= {(Status.MERGED, Status.REVIEW, HUMAN)}

    @invariant()
    def only_a_human_opens_the_gate(self) -> None:
        begun = [(start, actor) for start, to, actor in self.steps() if to is Status.MERGING]
        assert set(begun) <= {(Status.REVIEW, HUMAN)}

    @invariant()
    def only_a_human_rejects_and_never_what_is_at_work_or_over(self) -> None:
        rejected = [(start, actor) for start, to, actor in self.steps() if to is Status.REJECTED]
        assert {actor for _, actor in rejected} <= {HUMAN}
        assert {start for start, _ in rejected} <= REJECTABLE

    @invariant()
    def nothing_is_merged_that_was_not_reviewed(self) -> None:
        if self.state.status is Status.MERGED:
            assert self.trail[-3:-1] == [Status.REVIEW, Status.MERGING]

    @invariant()
    def a_watchdog_never_wakes_a_run(self) -> None:
        woken = [actor for to, actor in zip(self.trail[1:], self.by, strict=True) if to is Status.ACTIVE]
        assert WATCHDOG not in woken

    @invariant()
    def a_dead_run_is_only_resumed_by_a_human(self) -> None:
        for start, to, actor in self.steps():
            if start in {Status.CRASHED, Status.STOPPED}:
                assert (to, actor) in {(Status.ACTIVE, HUMAN), (Status.REJECTED, HUMAN)}


TestLifecycle = Lifecycle.TestCase
TestLifecycle.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)


# --- state.json -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", STATES, ids=lambda path: path.stem)
def test_every_state_we_ever_wrote_still_loads_and_keeps_its_keys(path: Path) -> None:
    """T124: the seed's own state file is among them."""
    written = json.loads(path.read_bytes())
    state = RunState.from_json(path.read_bytes())
    again = json.loads(state.to_json())
    assert RunState.from_json(state.to_json()) == state
    softened = {"phase", "failure"} if "later" in path.stem else set()
    assert {key: again[key] for key in written if key not in softened} == {
        key: value for key, value in written.items() if key not in softened
    }


def test_the_seeds_own_state_reads_as_a_run_before_its_start() -> None:
    state = RunState.from_json((COMPAT / "state_v1_seed.json").read_bytes())
    assert (state.status, state.phase, state.pid, state.session_id) == (Status.ACTIVE, Phase.CREATED, None, None)
    assert (state.last_heartbeat, state.failure, state.config_hash) == (None, None, "a1b2c3d4")
    assert state.worktree_path is not None
    assert naming.parse(Path(state.worktree_path).name) is not None
    assert epoch(state.started_at) == 1_763_821_800


def test_a_merged_run_of_several_agents_is_read_whole() -> None:
    state = RunState.from_json((COMPAT / "state_v1_merged_team.json").read_bytes())
    assert (state.status, is_terminal(state.status), state.unknown) == (Status.MERGED, True, {})
    assert [naming.parse(name) is not None for name in state.workers] == [True, True]
    assert state.merge == {
        "target": "refs/heads/main", "before": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "commit": "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c", "tree": "5d41402abc4b2a76b9719d911017c592a1b2c3d4", "branch": True,
    }  # fmt: skip


@pytest.mark.parametrize("path", [path for path in STATES if "merged" not in path.stem], ids=lambda path: path.stem)
def test_a_state_from_before_there_were_merges_and_teams_has_none(path: Path) -> None:
    state = RunState.from_json(path.read_bytes())
    assert (state.merge, state.workers) == (None, ())


def test_what_a_later_release_says_is_kept_or_read_as_its_nearest() -> None:
    state = RunState.from_json((COMPAT / "state_v1_from_a_later_release.json").read_bytes())
    assert state.unknown == {"energy": {"joules": [1, 2.5]}, "colour": None}
    assert state.phase is Phase.CREATED
    assert state.failure == Failure(
        kind=FailureKind.INTERNAL, message="A kind that this release does not know.", last_safe_artifact=None
    )
    stepped = step(state, Status.ACTIVE, HUMAN)
    assert json.loads(stepped.to_json())["energy"] == {"joules": [1, 2.5]}


NO_STATES = [
    b"", b"\0" * 300, b"{", b"[]", b"null", b"3", b'"ACTIVE"', b"{}", b'{"status": null}', b'{"status": "ASLEEP"}',
    b'{"status": []}', b'{"status": "ACTIVE"', b"\xff\xfe{", b"[" * 100_000, b'{"status": ' + b"9" * 5000 + b"}",
]  # fmt: skip


@pytest.mark.parametrize("data", NO_STATES, ids=range(len(NO_STATES)))
def test_what_is_no_state_is_tampered_and_never_guessed(data: bytes) -> None:
    """C29: a damaged state file is reported as such."""
    with pytest.raises(Tampered):
        RunState.from_json(data)


WRONG = [
    ("pid", "77"), ("pid", True), ("pid", 1.5), ("pid", 10**400), ("pid", {}), ("clock_offset", "x"), ("clock_offset", math.nan),
    ("clock_offset", math.inf), ("started_at", 5), ("notes", 5), ("notes", "text"), ("notes", [1]), ("usage", []), ("usage", "x"),
    ("patch", 3), ("merge", "main"), ("merge", []), ("workers", 5), ("workers", "a1b2"), ("workers", [1]), ("workers", {"a": 1}), ("events", "many"), ("attempt", []), ("revision", "1"), ("model", 4), ("config_hash", 12345678), ("session_id", ["x"]),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), WRONG, ids=[f"{key}-{index}" for index, (key, _) in enumerate(WRONG)])
def test_a_value_of_another_type_is_found_at_the_door(key: str, value: Any) -> None:
    """C29: a hand-edited field must not fail later, in the middle of a sweep."""
    with pytest.raises(Tampered, match=key):
        RunState.from_json(json.dumps({"status": "ACTIVE", key: value}).encode())


@pytest.mark.parametrize("value", [{"kind": []}, {"kind": "oom", "last_safe_artifact": 5}, {}, [], "oom", 3])
def test_an_odd_failure_is_read_as_far_as_it_goes(value: Any) -> None:
    state = RunState.from_json(json.dumps({"status": "CRASHED", "failure": value, "phase": []}).encode())
    assert state.phase is Phase.CREATED
    if isinstance(value, dict):
        assert state.failure is not None
        assert state.failure.last_safe_artifact is None
    else:
        assert state.failure is None


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_flipped_byte_gives_a_state_or_tampered_and_nothing_else(data: st.DataObject) -> None:
    """C29: byte by byte."""
    whole = data.draw(st.sampled_from([path.read_bytes() for path in STATES]))
    place = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:place] + bytes([data.draw(st.integers(0, 255))]) + whole[place + 1 :]
    try:
        state = RunState.from_json(changed)
    except Tampered:
        return
    assert RunState.from_json(state.to_json()) == state


text_or_none = st.none() | st.text(max_size=20)
numbers = st.none() | st.integers(-(2**62), 2**62)
states = st.builds(
    RunState,
    status=st.sampled_from(Status),
    phase=st.sampled_from(Phase),
    pid=numbers,
    session_id=text_or_none,
    clock_offset=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    failure=st.none()
    | st.builds(Failure, kind=st.sampled_from(FailureKind), message=st.text(max_size=20), last_safe_artifact=text_or_none),
    usage=st.dictionaries(st.text(max_size=8), st.integers(0, 10**9), max_size=3),
    patch=st.none() | st.dictionaries(st.text(max_size=8), st.integers(0, 10**9), max_size=3),
    merge=st.none() | st.dictionaries(st.text(max_size=8), st.text(max_size=8) | st.booleans(), max_size=4),
    workers=st.lists(st.text(max_size=10), max_size=3).map(tuple),
    notes=st.lists(st.text(max_size=10), max_size=3).map(tuple),
    unknown=st.dictionaries(st.text(min_size=1, max_size=8).map(lambda key: f"x-{key}"), st.none() | st.text(max_size=5), max_size=3),
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(states)
def test_a_state_survives_the_disk(state: RunState) -> None:
    data = state.to_json()
    assert RunState.from_json(data) == state
    assert data.isascii()
    assert data.endswith(b"}\n")


# --- meta.yaml --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", METAS, ids=lambda path: path.stem)
def test_every_meta_we_ever_wrote_still_loads(path: Path) -> None:
    """T122: the seed's own example is among them."""
    written = yaml.safe_load(path.read_bytes())
    meta = RunMeta.from_dict(written)
    again = meta.to_dict()
    assert RunMeta.from_dict(yaml.safe_load(yaml.safe_dump(again, allow_unicode=True))) == meta
    assert {key: again[key] for key in written} == written
    assert again["type"] == again["run_type"]


def test_a_run_knows_the_team_that_it_is_a_part_of() -> None:
    teams = {path.stem: RunMeta.from_dict(yaml.safe_load(path.read_bytes())).team for path in METAS}
    whole = "26-03-01_0915__tidy-the-imports__a1b2"
    assert teams == {"meta_v1_fix_of_a_team": whole, "meta_v1_scout": None, "meta_v1_seed": None}


def test_the_seeds_own_meta_has_the_id_that_its_name_ends_with() -> None:
    meta = RunMeta.from_dict(yaml.safe_load((COMPAT / "meta_v1_seed.yaml").read_bytes()))
    assert (meta.run_type, meta.short_id, meta.engine, meta.isolation) == ("fix", "a1b2", "", "none")
    assert meta.tools_allowlist == ("ReadFile", "Grep", "Ls", "EditFile", "GitDiff")


def test_meta_has_every_key_that_the_design_names() -> None:
    """T122: all keys present."""
    keys = (
        "run_name short_id run_type type task slug repo_sha_start dirty engine model engine_version agent tools_allowlist "
        "safe_commands human_only_commands config_hash commands_digest schema"
    )
    assert set(keys.split()) <= set(planned().meta.to_dict())


@pytest.mark.parametrize("key", ["run_name", "run_type", "task", "config_hash"])
@pytest.mark.parametrize("value", [None, "", "absent"])
def test_meta_without_what_an_envelope_needs_is_tampered(key: str, value: str | None) -> None:
    raw = planned().meta.to_dict() | {key: value}
    if value == "absent":
        del raw[key]
    if key == "run_type":
        raw["type"] = None
    with pytest.raises(Tampered, match=key):
        RunMeta.from_dict(raw)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tools_allowlist", "Grep"), ("tools_allowlist", 5), ("tools_allowlist", {"Grep": 1}), ("safe_commands", [1]), ("argv", [["x"]]),
        ("task", 5), ("run_name", ["x"]), ("config_hash", 12345678), ("dirty", "no"), ("short_id", 1234), ("schema", "1"), ("model", 3),
        ("team", 3), ("team", ["a1b2"]),
    ],
)  # fmt: skip
def test_meta_with_a_value_of_another_type_is_tampered(key: str, value: Any) -> None:
    with pytest.raises(Tampered, match=key):
        RunMeta.from_dict(planned().meta.to_dict() | {key: value})


def test_meta_written_by_a_later_release_loads_without_what_is_new() -> None:
    meta = planned().meta
    assert RunMeta.from_dict(meta.to_dict() | {"smell": "of rain"}) == meta


# --- errors, paths, instants ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "code"), [(OperatorError, 2), (AgentError, 3), (HostError, 4), (Tampered, 5), (IllegalStep, 4)]
)
def test_an_error_knows_whose_fault_it_is(kind: type[BoxError], code: int) -> None:
    error = kind("It is so.", "Type: this")
    assert (error.code, error.message, error.hint, str(error)) == (code, "It is so.", "Type: this", "It is so.")
    assert kind("It is so.").hint == ""


def test_failures_of_the_machine_and_of_the_agent_are_told_apart() -> None:
    agents_own = {
        FailureKind.OOM,
        FailureKind.TIMEOUT,
        FailureKind.TOOL_ERROR,
        FailureKind.AGENT_ABORT,
        FailureKind.AIRLOCK_BREACH,
    }
    assert not agents_own & HOST_FAILURES
    assert {FailureKind.ENOSPC, FailureKind.REBOOT, FailureKind.SPAWN} <= HOST_FAILURES


def test_every_file_lies_where_the_design_says() -> None:
    layout = Layout(Path("/w/shop"))
    box = layout.box("26-03-01_0915__x__0be1")
    shown = {
        str(path)
        for path in (
            layout.data, layout.runs, layout.active, layout.ids, layout.pointers, layout.latest, layout.ledger, layout.dashboard,
            layout.quarantine, layout.ledger_lock, layout.repo_lock, layout.search_index, layout.commands("0be1"),
        )
    }  # fmt: skip
    data = "/w/shop/.agents"
    assert shown == {
        data, f"{data}/runs", f"{data}/active", f"{data}/ids", f"{data}/pointers", f"{data}/latest", f"{data}/INDEX.jsonl",
        f"{data}/INDEX.md", f"{data}/quarantine", f"{data}/locks/ledger.lock", f"{data}/locks/repo.lock", f"{data}/hollow/index",
        "/w/shop/.claude/commands/run_0be1",
    }  # fmt: skip
    assert box.name == "26-03-01_0915__x__0be1"
    inside = (
        box.meta, box.state, box.report, box.plan, box.stream, box.stderr, box.launch, box.spool, box.outbox, box.owner_lock, box.state_lock, box.reserve,
    )  # fmt: skip
    assert [str(path.relative_to(box.path)) for path in inside] == [
        "meta.yaml", "state.json", "report.md", "plan.md", "raw/stream.jsonl", "raw/stderr.log", "raw/launch.json", "private/spool",
        "outbox", "private/owner.lock", "private/state.lock", "private/reserve",
    ]  # fmt: skip
    assert {"meta.yaml", "report.md", "raw/stream.jsonl"} <= set(EVIDENCE)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_763_821_800, "2025-11-22T14:30:00.000Z"),
        (1_763_821_800.1239, "2025-11-22T14:30:00.123Z"),
    ],
)
def test_an_instant_is_written_in_utc_with_milliseconds(seconds: float, text: str) -> None:
    assert iso(seconds) == text
    assert epoch(text) == pytest.approx(seconds, abs=0.001)


@given(st.floats(-6e10, 2.5e11) | st.floats(0, 2) | st.integers(0, 2**32).map(lambda whole: whole + 0.9999995))
def test_an_instant_is_written_as_datetime_writes_it(seconds: float) -> None:
    """Rounded to the microsecond, cut to the millisecond, carried into the year where that is due."""
    written = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    assert iso(seconds) == written.replace("+00:00", "Z")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2025-11-22T14:30:00Z", 1_763_821_800),
        ("2025-11-22T15:30:00+01:00", 1_763_821_800),
        ("2025-11-22T14:30:00", 1_763_821_800),
        ("", None),
        (None, None),
        ("yesterday", None),
        (5, None),
        ("2025-13-01", None),
        ("0001-01-01T00:00:00+14:00", -62_135_647_200),
    ],
)
def test_an_instant_is_read_or_is_none(text: Any, seconds: float | None) -> None:
    assert epoch(text) == seconds


def test_the_offset_of_the_clocks_is_their_difference() -> None:
    assert Clock(wall=lambda: 1000.5, mono=lambda: 400.25).offset() == 600.25
