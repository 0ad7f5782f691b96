from __future__ import annotations

import json
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from essentials.records import replace
from hollow.memory.chronicles import KEPT, KEPT_CYCLES, LIMIT, Chronicles
from hollow.memory.files import Files
from hollow.memory.moments import iso, seconds
from hollow.memory.sufferings import Sufferings
from hollow.substrate.chronicle import Chronicle
from hollow.substrate.crisis import step
from hollow.substrate.model import Happening, Kind, Relief, Suffering
from hollow.substrate.suffering import Band, band, escalate, load, raw
from tests.support.pains import NOON, cycles, later, ok, pain, past, suffering, types

SEED = {
    # Cipher of seed 004, with the field names and the minutes of its files.
    "active_stressors": [
        {"type": "repeated_failure", "description": "40/40 recent goals failed", "severity": 0.201, "onset": "2026-05-03 01:27",
         "escalation_per_day": 0.04, "observable_condition": "bring failure rate below 30%", "resolved": False, "resolved_at": None,
         "resolution_note": "", "peak_severity": 0.201},
        {"type": "wrapper_dependency", "description": "d", "severity": 0.2, "onset": "2026-05-03 05:00", "escalation_per_day": 0.03,
         "observable_condition": "c", "resolved": False, "peak_severity": 0.2},
        {"type": "Potential Wrapper Override", "description": "d", "severity": 0.2, "onset": 1777789800, "observable_condition": "c"},
    ],
    "resolved_history": [
        {"type": "cognitive_drift", "description": "d", "severity": 0.1, "onset": "2026-05-01 10:00", "resolved": True,
         "resolved_at": "2026-05-02 10:00", "resolution_note": "reframed", "peak_severity": 0.211},
    ],
    "last_escalated": "2026-05-03 07:30",
    "mood": "kept",
}  # fmt: skip


class Room:
    """A state folder, and what its files warn of."""

    def __init__(self, root):
        self.root = root
        self.warned = []
        self.files = Files(root, lambda kind, **facts: self.warned.append((kind, facts)))
        self.book = Sufferings(self.files)
        self.chronicles = Chronicles(self.files)

    def place(self, value, agent="cipher"):
        path = self.root / "identity" / agent / "suffering.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
        return path


@pytest.fixture
def room(tmp_path):
    return Room(tmp_path)


# --- Suffering --------------------------------------------------------------------------------------------------------


def test_the_seeds_file_loads(room):
    """T70: .201 + .200 + .200 is constrained, in the fields and minutes that the seed's files have."""
    room.place(SEED)
    s, damaged = room.book.load("cipher")
    assert not damaged
    assert types(s) == ["repeated_failure", "wrapper_dependency", "potential_wrapper_override"]
    assert load(s) == pytest.approx(0.601)
    assert band(load(s)) is Band.HIGH
    assert [each.onset for each in s.active] == [
        seconds("2026-05-03T01:27:00Z"),
        seconds("2026-05-03T05:00:00+00:00"),
        1777789800.0,
    ]
    assert [each.origin for each in s.active] == ["placed"] * 3
    assert (s.history[0].note, s.history[0].stressor.peak, s.history[0].at) == (
        "reframed",
        0.211,
        seconds("2026-05-02 10:00"),
    )
    day, _ = escalate(s, s.last_escalated + 86400)
    assert [each.severity for each in day.active] == pytest.approx([0.241, 0.23, 0.23])


def test_what_is_saved_is_what_is_loaded(room):
    """T31: to the microsecond and the last bit; keys of others stay."""
    room.place(SEED)
    s, _ = room.book.load("cipher")
    s = replace(
        s,
        active=(*s.active, pain("futility", 1 / 3, onset=NOON + 0.000001, claim="over")),
        crisis_cycles=2,
        last_escalated=NOON + 0.25,
    )
    s = replace(s, history=(*s.history, Relief(stressor=pain("ennui", 0.1, peak=0.7), at=NOON, note="faded")))
    room.book.save(s)
    assert room.book.load("cipher") == (s, False)
    on_disk = json.loads((room.root / "identity/cipher/suffering.json").read_bytes())
    assert on_disk["mood"] == "kept"
    assert on_disk["active_stressors"][0]["escalation_per_day"] == 0.04
    assert set(SEED["active_stressors"][0]) <= set(on_disk["active_stressors"][0])


def test_nobody_suffers_before_the_first_time(room):
    assert room.book.load("vault") == (Suffering(agent="vault"), False)
    room.book.save(Suffering(agent="vault"))
    assert room.book.load("vault") == (Suffering(agent="vault"), False)


def test_small_steps_through_the_disk_add_up(room):
    """T31: saved and loaded at every cycle, nothing is rounded away."""
    s = suffering(pain("repeated_failure"))
    for cycle in range(40):
        s, _ = escalate(s, NOON + 6.0 * (cycle + 1))
        room.book.save(s)
        s, _ = room.book.load("cedar")
    assert s.active[0].severity == pytest.approx(0.20 + 0.04 * 240 / 86400, abs=1e-9)


def test_a_run_away_file_loads(room):
    """T69: thirteen stressors of 2.619 in all become five at a load of 1.0, the rest is history."""
    each = [0.35, 0.32, 0.31, 0.30, 0.29, 0.2, 0.2, 0.15, 0.13, 0.12, 0.10, 0.089, 0.06]
    assert sum(each) == pytest.approx(2.619)
    room.place(
        {
            "active_stressors": [
                {"type": f"worry {at}", "severity": value, "onset": "2026-05-03 01:27"} for at, value in enumerate(each)
            ]
        }
    )
    s, damaged = room.book.load("cipher")
    assert not damaged
    assert types(s) == [f"worry_{at}" for at in range(5)]
    assert (load(s), raw(s)) == (1.0, pytest.approx(1.57))
    assert [relief.stressor.type for relief in s.history] == [f"worry_{at}" for at in range(5, 13)]
    assert s.history[0].note.startswith("put aside: 13 stressors")


def test_one_bad_value_costs_no_other(room):
    """T21: each is judged by itself; what is unknown is no relief."""
    bad = [
        {"type": "futility", "severity": "a lot", "onset": "yesterday", "escalation_per_day": -4, "peak_severity": None},
        {"type": "ennui", "severity": "0.35", "onset": True, "escalation_per_day": 1e9, "description": 4},
        {"type": "dread", "severity": 7, "onset": -5, "escalation_per_day": 0.5},
        {"severity": 0.9}, {"type": 3}, {"type": "!!"}, None, "x",
        {"type": "over", "severity": 0.3, "resolved": True, "resolution_note": "done"},
        {"type": "stagnation", "severity": float("nan"), "onset": 1e300, "peak_severity": 0.1},
    ]  # fmt: skip
    room.place(
        {
            "active_stressors": bad,
            "resolved_history": [None, {"type": "old"}],
            "last_escalated": "2026-05-03 07:30",
            "crisis_cycles": "two",
        }
    )
    s, damaged = room.book.load("cipher")
    assert not damaged
    assert {each.type: (each.severity, each.rate, each.peak) for each in s.active} == {
        "futility": (0.20, 0.025, 0.20), "ennui": (0.35, 0.03, 0.35), "dread": (1.0, 0.5, 1.0), "stagnation": (0.20, 0.03, 0.20),
    }  # fmt: skip
    assert {each.onset for each in s.active} == {s.last_escalated}
    assert [relief.stressor.type for relief in s.history] == ["old", "over"]
    assert s.crisis_cycles == 0
    room.book.save(s)
    assert room.book.load("cipher") == (s, False)


@pytest.mark.parametrize("content", [b"{", b"\xff\x00", b"", b"null"])
def test_an_unreadable_file_is_said_and_put_aside(room, content):
    """T60: whoever asks hears that it is not to be trusted; the file is in quarantine, the last good copy is back."""
    room.book.save(suffering(pain("futility", 0.3)))
    room.book.save(suffering(pain("futility", 0.4)))
    path = room.place(content, "cedar")
    s, damaged = room.book.load("cedar")
    assert (damaged, s.active[0].severity) == (True, 0.3)
    assert [each.read_bytes() for each in (room.root / "quarantine").iterdir()] == [content]
    assert json.loads(path.read_bytes())["active_stressors"][0]["severity"] == 0.3
    assert room.warned[0][0] == "memory.damaged"
    assert room.book.load("cedar") == (s, False)


@pytest.mark.parametrize("value", [[], 3, "x", {"active_stressors": {}}, {"resolved_history": "none"}])
def test_a_file_of_another_shape_is_not_trusted(room, value):
    """T60: it is kept aside before anything replaces it."""
    room.place(value, "cedar")
    assert room.book.load("cedar") == (Suffering(agent="cedar"), True)
    room.book.save(suffering(pain("futility")))
    assert json.loads((room.root / "quarantine/identity_cedar_suffering.json.shape").read_bytes()) == value


def test_the_count_of_crises_survives_a_restart(room):
    """T67: two in crisis, a restart, and a third one breaks it."""
    s = suffering(pain("futility", 0.95))
    for _ in range(2):
        s, _, reset = step(s, load(s))
        assert not reset
    room.book.save(s)
    again, _ = Sufferings(Files(room.root)).load("cedar")
    assert step(again, load(again))[2]


def test_agents_suffer_for_themselves(room):
    room.book.save(suffering(pain("futility"), agent="cedar"))
    room.book.save(suffering(pain("stagnation"), agent="vault"))
    assert [types(room.book.load(agent)[0]) for agent in ("cedar", "vault", "cipher")] == [
        ["futility"],
        ["stagnation"],
        [],
    ]


# --- Moments ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1970-01-01 00:01", 60.0), ("1970-01-01T00:01:00Z", 60.0), ("1970-01-01T01:01:00+01:00", 60.0), (" 1970-01-02 ", 86400.0), (60, 60.0),
     (1.5, 1.5), (True, None), (None, None), ("soon", None), (float("inf"), None), (-1, None), (1e15, None), ("0001-01-01T00:00:00+14:00", None),
     ("1969-12-31", None), ([], None)],
)  # fmt: skip
def test_moments_of_any_form(value, expected):
    """T70: files of others give minutes, numbers or ISO 8601."""
    assert seconds(value) == expected


@given(st.floats(0.0, 4e9))
@settings(max_examples=50, deadline=None)
def test_a_moment_comes_back(at):
    """T31: to the microsecond."""
    assert seconds(iso(at)) == pytest.approx(at, abs=1e-6)


# --- Chronicles -------------------------------------------------------------------------------------------------------


def test_what_happened_is_remembered(room):
    chronicle = past(ok(2), cycles(1))
    room.chronicles.add("cedar", chronicle.happenings[:2])
    room.chronicles.add("cedar", chronicle.happenings[2:])
    room.chronicles.add("cedar", [])
    assert room.chronicles.read("cedar") == chronicle
    assert room.chronicles.read("vault") == Chronicle()
    assert len((room.root / "chronicle/cedar.jsonl").read_bytes().splitlines()) == 2


def test_what_is_no_happening_is_left_out(room):
    """T21: one bad entry costs no other; lines by hand and in another form of time are read."""
    path = room.root / "chronicle/cedar.jsonl"
    path.parent.mkdir()
    lines = [
        {"kind": "host", "at": "2026-05-03 07:30", "facts": {"text": "hello"}},
        {"kind": "unheard of", "at": 1}, {"kind": "host"}, {"kind": "host", "at": 5, "facts": []}, {"kind": ["host"], "at": 5}, {"happenings": [3, None]},
        {"happenings": [{"kind": "cycle", "at": 7, "cycle": "c1"}, {"kind": "host", "at": True}]},
    ]  # fmt: skip
    path.write_text("".join(json.dumps(each) + "\n" for each in lines) + "{\n" + '{"kind": "host", "at"')
    found = room.chronicles.read("cedar").happenings
    assert [(each.kind, each.at, each.cycle) for each in found] == [
        (Kind.HOST, seconds("2026-05-03 07:30"), ""),
        (Kind.CYCLE, 7.0, "c1"),
    ]
    assert room.warned == [("memory.malformed", {"file": "chronicle/cedar.jsonl", "lines": 1})]


def test_a_chronicle_stays_small_and_keeps_what_is_rare(room):
    """T52: after thousands of steps it is bounded, and the one word of the operator is still there (W32)."""
    word = Happening(kind=Kind.HOST, at=NOON, cycle="", facts={"text": "x" * 9000})
    room.chronicles.add("cedar", [word])
    for batch in range(8):
        room.chronicles.add(
            "cedar",
            [
                Happening(
                    kind=kind,
                    at=NOON + batch * 1000 + at,
                    cycle=f"c{batch}",
                    facts={"capability": "fs_read", "ok": True},
                )
                for at in range(300)
                for kind in (Kind.STEP, Kind.CYCLE)
            ],
        )
        assert (room.root / "chronicle/cedar.jsonl").stat().st_size <= LIMIT
    kept = room.chronicles.read("cedar")
    assert len(kept.of(Kind.HOST)[0].facts["text"]) == 500
    assert len(kept.of(Kind.STEP)) < 1200
    assert kept.happenings[-1].at == NOON + 7299


def test_compaction_keeps_the_newest_of_each_kind(room):
    many = [
        Happening(kind=kind, at=NOON + at, cycle="c", facts={})
        for at in range(3000)
        for kind in (Kind.STEP, Kind.CYCLE)
    ]
    room.chronicles.add("cedar", many)
    kept = room.chronicles.read("cedar")
    assert kept.of(Kind.STEP) == tuple(many[-2 * KEPT :: 2])
    assert kept.of(Kind.CYCLE) == tuple(many[-2 * KEPT_CYCLES + 1 :: 2])


def test_long_facts_do_not_break_the_bound(room):
    facts = {f"k{at}": "x" * 500 for at in range(40)}
    for batch in range(4):
        room.chronicles.add(
            "cedar", [Happening(kind=Kind.STEP, at=NOON + batch * 10 + at, cycle="c", facts=facts) for at in range(10)]
        )
        assert (room.root / "chronicle/cedar.jsonl").stat().st_size <= LIMIT
    assert room.chronicles.read("cedar").happenings[-1].at == NOON + 39


def test_two_agents_of_one_home_write_at_once(room):
    """T22: each line is whole."""

    def write(agent):
        book = Chronicles(Files(room.root))
        for at in range(10):
            book.add(agent, [Happening(kind=Kind.CYCLE, at=NOON + at, cycle=agent, facts={})])

    threads = [threading.Thread(target=write, args=(agent,)) for agent in ("cedar", "cedar", "vault")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(room.chronicles.read(agent).happenings) for agent in ("cedar", "vault")] == [20, 10]
    assert room.warned == []


@given(st.lists(st.floats(0.0, 1.0), max_size=7), st.integers(0, 5), st.floats(0, 30))
@settings(max_examples=25, deadline=None)
def test_any_suffering_comes_back(tmp_path_factory, severities, crises, days):
    """T31: what is kept is what was there, at any severity and time."""
    room = Room(tmp_path_factory.mktemp("state"))
    s = suffering(*(pain(f"worry_{at}", value) for at, value in enumerate(severities[:5])), crisis_cycles=crises)
    s, _ = escalate(s, float(int(later(days))))
    room.book.save(s)
    assert room.book.load("cedar")[0] == s
