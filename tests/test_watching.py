"""What the operator watches: values out of ledger, streams and state files, lines of them, and a terminal left clean."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from agents import sightings, watchview
from agents.sightings import News, Scene, Seen, Step
from agents.watching import LEDGER_TAIL, Watcher
from tests.support.world import AGENT, PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agents.context import Context

RUN = "26-03-01_0900__one-cycle-of-cedar__a1b2"
NASTY = "\x1b]0;owned\x07\x1b[2J\u202eevil\x9b31m"
SUFFERING = {
    "active_stressors": [
        {"type": "futility", "severity": 0.201}, {"type": "stagnation", "severity": 0.41},
        {"type": "broken", "severity": "high"}, "no stressor", {"type": f"custom{NASTY}", "severity": 0.1},
    ],
    "resolved_history": [],
}  # fmt: skip


def goal(event: str, progress: float, **more: Any) -> tuple[str, dict[str, Any]]:
    facts = {"agent": "cedar", "goal_id": "goal-0", "objective": "Explain the shop", "progress": progress, **more}
    return event, {"said": facts}


def put(path: Path, *rows: Any) -> None:
    """Write JSON rows to *path*, one a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def call(number: int, name: str, argument: str) -> dict[str, Any]:
    block = {"type": "tool_use", "id": f"call_{number}", "name": name, "input": {"path": argument}}
    return {"type": "assistant", "message": {"content": [block]}}


def result(number: int, *, is_error: bool = False) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": "x", "is_error": is_error}
    return {"type": "user", "message": {"content": [block]}}


def fact(kind: str, **facts: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": "hollow", "kind": kind, **facts}


def alive(context: Context, *events: Any) -> None:
    """A run of cedar that is under way and has said *events*."""
    box = context.store.box(RUN)
    put(box.stream, *events)
    box.meta.write_text(f"run_name: {RUN}\ntype: cycle\nagent: cedar\n")
    context.layout.active.mkdir(parents=True, exist_ok=True)
    (context.layout.active / "a1b2").write_text(RUN)


def look(context: Context) -> Scene:
    return Watcher(context.layout, context.store).look(1_772_355_600.0)


def seen(context: Context, agent: str = "cedar") -> Seen:
    return next(one for one in look(context).agents if one.agent == agent)


# --- Looking ----------------------------------------------------------------------------------------------------------


def test_a_repository_in_which_nobody_lived_shows_nobody(context):
    scene = look(context)
    assert scene == Scene(at=1_772_355_600.0, agents=tuple(Seen(agent=name) for name in ("cedar", "cipher", "vault")))
    assert "No agent has lived yet" in watchview.plain(scene, 80)


def test_load_and_stressors_come_from_the_state_file(context):
    """The load is the sum of the severities."""
    put(context.layout.memory / "identity" / "cedar" / "suffering.json", SUFFERING)
    found = seen(context)
    assert found.load == pytest.approx(0.711)
    assert [name for name, _ in found.stressors] == ["stagnation", "futility", sightings.clean(f"custom{NASTY}")]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([goal("goal.created", 0.0)], ("Explain the shop", 0.0)),
        ([goal("goal.created", 0.0), goal("goal.progressed", 0.4)], ("Explain the shop", 0.4)),
        ([goal("goal.progressed", 1.0), goal("goal.gate_failed", 0.85)], ("Explain the shop", 0.85)),
        ([goal("goal.progressed", 1.0), goal("goal.completed", 1.0)], ("", None)),
        ([goal("goal.progressed", 0.5), goal("goal.abandoned", 0.5)], ("", None)),
        ([goal("goal.progressed", "much")], ("Explain the shop", None)),
        ([goal("goal.progressed", 0.5, agent="nobody")], ("", None)),
    ],
)
def test_a_goal_is_as_the_ledger_tells_it(context, told, expected):
    for event, facts in told:
        context.journal.append(event, RUN, facts)
    found = seen(context)
    assert (found.goal, found.progress) == expected


def test_an_agent_cannot_speak_for_another(context):
    context.journal.append("run.started", RUN, {"agent": "cedar", "status": "ACTIVE"})
    event, facts = goal("goal.progressed", 0.5, agent="vault")
    context.journal.append(event, RUN, facts)
    assert seen(context, "vault").goal == ""
    assert seen(context, "cedar").goal == "Explain the shop"


def test_a_run_under_way_tells_more_than_the_ledger_knows(context):
    context.journal.append(*[goal("goal.progressed", 0.1)[0], RUN, goal("goal.progressed", 0.1)[1]])
    alive(
        context, call(1, "fs_read", "a.py"), result(1), call(2, "fs_write", "workspace/cedar/x.md"), result(2, is_error=True),
        fact("goal.progressed", objective="Explain the shop", progress=0.3), call(3, "memory_set", f"k{NASTY}"), "torn",
    )  # fmt: skip
    found = seen(context)
    assert (found.progress, found.run, found.alive) == (0.3, "a1b2", True)
    assert [(step.name, step.ok) for step in found.steps] == [
        ("fs_read", True),
        ("fs_write", False),
        ("memory_set", None),
    ]
    assert "\x1b" not in found.steps[2].argument
    assert look(context).running == 1


def test_where_the_ledger_is_silent_the_snapshot_of_the_goals_is_looked_at(context):
    record = {"goal_id": "goal-1", "objective": "From the snapshot", "status": "active", "metrics": {"progress": 0.25}}
    put(context.layout.memory / "goals" / "cipher" / "snapshot.json", {"open": {"goal-1": record}, "ended": {}})
    found = seen(context, "cipher")
    assert (found.goal, found.progress) == ("From the snapshot", 0.25)


def test_requests_without_an_answer_are_counted(context):
    put(
        context.layout.memory / "claude_requests.jsonl",
        *({"request_id": f"req-{number}"} for number in (1, 2, 2, 3)),
        "x",
    )
    put(context.layout.memory / "claude_responses.jsonl", {"request_id": "req-2", "status": "fulfilled"}, [])
    assert look(context).pending == 2


@pytest.mark.parametrize("data", [b"", b"{", b"null", b"[]", b'{"active_stressors": 3}', b"\xff\x00", b"[" * 100_000])
def test_damaged_files_cost_what_they_would_have_told(context, data):
    for name in ("identity/cedar/suffering.json", "goals/cedar/snapshot.json", "claude_requests.jsonl"):
        path = context.layout.memory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    context.layout.ledger.write_bytes(data)
    alive(context)
    context.store.box(RUN).stream.write_bytes(data)
    scene = look(context)
    assert [one.goal for one in scene.agents] == ["", "", ""]
    assert scene.pending == 0


def test_a_pipe_or_a_link_in_the_place_of_a_file_is_not_waited_for(context):
    folder = context.layout.memory / "identity"
    for agent in ("cedar", "cipher"):
        (folder / agent).mkdir(parents=True)
    os.mkfifo(folder / "cedar" / "suffering.json")
    (folder / "cipher" / "suffering.json").symlink_to("/etc/passwd")
    assert [one.load for one in look(context).agents] == [None, None, None]


def test_what_has_not_changed_is_not_read_again_and_what_has_is(context):
    path = context.layout.memory / "identity" / "cedar" / "suffering.json"
    watcher = Watcher(context.layout, context.store)
    put(path, SUFFERING)
    first = watcher.look(0.0)
    assert watcher.look(0.0) == first
    put(path, {"active_stressors": []})
    assert watcher.look(0.0).agents[0].load == 0.0
    path.unlink()
    assert watcher.look(0.0).agents[0].load is None


def test_a_look_costs_the_same_whatever_the_history(context):
    line = json.dumps(
        {"seq": 1, "event": "goal.progressed", "facts": {"said": {"agent": "vault", "objective": "x" * 900}}}
    )
    context.layout.data.mkdir(exist_ok=True)
    context.layout.ledger.write_text(f"{line}\n" * (3 * LEDGER_TAIL // len(line)))
    scene = look(context)
    assert len(scene.news) == 1
    assert scene.agents[2].goal == "x" * 300


def test_steps_towards_one_goal_are_one_piece_of_news(context):
    told = [goal("goal.created", 0.0), goal("goal.progressed", 0.2), goal("goal.progressed", 0.4), goal("goal.completed", 1.0),
            ("suffering.assessed", {"said": {"agent": "cedar", "load": 0.201}}), ("other.thing", {}),
            ("run.finished", {"agent": "cedar", "status": "DONE", "task": "cycle"})]  # fmt: skip
    for event, facts in told:
        context.journal.append(event, RUN, facts)
    assert [(one.event, one.text) for one in look(context).news] == [
        ("goal.created", "0.00 Explain the shop"), ("goal.progressed", "0.40 Explain the shop"),
        ("goal.completed", "1.00 Explain the shop"), ("suffering.assessed", "0.20"), ("run.finished", "DONE cycle"),
    ]  # fmt: skip


def test_no_secret_and_no_control_character_is_carried_on():
    text = sightings.clean(f"key = sk-ant-api03-{'A1b2' * 20} {NASTY}\nnext")
    assert "A1b2A1b2" not in text
    assert text.isprintable()


# --- Lines ------------------------------------------------------------------------------------------------------------

SCENE = Scene(
    at=1_772_355_600.0, running=1, pending=2,
    agents=(
        Seen(agent="cedar", load=0.92, stressors=(("futility", 0.51), ("stagnation", 0.41)), goal="Explain the shop",
             progress=0.4, run="a1b2", alive=True, steps=(Step(name="fs_read", argument="shop.py", ok=True), Step(name="fs_write"))),
        Seen(agent="cipher", load=0.0, run="0c0c", steps=(Step(name="memory_set", ok=False),)),
        Seen(agent="vault"),
    ),
    news=(News(time="2026-03-01T09:00:01Z", event="goal.progressed", agent="cedar", text="Explain the shop"),),
)  # fmt: skip

PLAIN = """\
09:00:00 UTC · 1 run under way · 2 requests for you

cedar   load 0.92 [##########] crisis  run a1b2
        futility 0.51 · stagnation 0.41
        goal 0.40 [####------] Explain the shop
        ✓ fs_read shop.py  … fs_write

cipher  load 0.00 [----------] none
        ✗ memory_set

Lately
  09:00:01 cedar   goal.progressed Explain the shop"""


def test_the_picture_in_words():
    assert watchview.plain(SCENE, 80) == PLAIN


@pytest.mark.parametrize(("load", "name", "marks"), [
    (0.0, "none", 0), (0.01, "none", 1), (0.349, "none", 4), (0.35, "present", 4), (0.4, "present", 4), (0.55, "high", 6),
    (0.75, "dominant", 8), (0.9, "crisis", 9), (0.92, "crisis", 10), (1.0, "crisis", 10),
])  # fmt: skip
def test_bands_and_bars(load, name, marks):
    """The edges belong to the higher band; the seed's own sample of 0.92 has ten marks."""
    assert watchview.band(load) == name
    assert watchview.bar(load) == f"[{'#' * marks}{'-' * (10 - marks)}]"


@given(width=st.integers(1, 120), height=st.integers(1, 40))
@hypothesis_settings(max_examples=50, deadline=None)
def test_no_line_is_wider_and_no_picture_higher_than_the_terminal(width, height):
    drawn = watchview.lines(SCENE, width, height)
    assert all(len(line.text) <= width for line in drawn)
    assert 0 < len(drawn) <= height


def test_in_a_low_terminal_news_and_steps_give_way_before_load_and_goal():
    texts = "\n".join(line.text for line in watchview.lines(SCENE, 80, 9))
    assert "goal 0.40" in texts
    assert "cipher  load" in texts
    assert "Lately" not in texts


def test_json_says_the_same_as_values():
    told = json.loads(watchview.as_json(SCENE))
    assert [(one["agent"], one["band"]) for one in told["agents"]] == [
        ("cedar", "crisis"),
        ("cipher", "none"),
        ("vault", None),
    ]
    assert told["agents"][0]["steps"][0] == {"name": "fs_read", "argument": "shop.py", "ok": True}
    assert told["pending"] == 2


# --- The terminal -----------------------------------------------------------------------------------------------------

ON, OFF = b"\x1b[?1049h", b"\x1b[?1049l"
HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"


# Makes its standard input the controlling terminal, so that Ctrl-C and a hang-up reach what it then becomes.
OWNED = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


class Terminal:
    """A real terminal of *columns* by *rows* and one program in it, whose controlling terminal it is."""

    def __init__(self, argv: list[str], cwd: Path, columns: int = 80, rows: int = 24, **env: str) -> None:
        self.operator, program = pty.openpty()
        self.resize(columns, rows)
        # A second handle of ours, so that its modes can be looked at when the program is gone.
        self.modes = program
        self.before = termios.tcgetattr(program)
        self.seen = b""
        self.process = subprocess.Popen(
            [sys.executable, "-IS", "-c", OWNED, *argv], cwd=cwd, stdin=program, stdout=program, stderr=program,
            start_new_session=True, env={**os.environ, "TERM": "xterm-256color", **env},
        )  # fmt: skip

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.operator, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, found: Callable[[bytes], object], why: str) -> None:
        """Read what the program shows until *found* says so."""
        end = time.monotonic() + 40
        while not found(self.seen):
            assert time.monotonic() < end, (why, self.seen[-2000:])
            if select.select([self.operator], [], [], 0.2)[0]:
                self.seen += os.read(self.operator, 65536)

    def types(self, keys: bytes) -> None:
        os.write(self.operator, keys)

    def ended(self) -> int:
        """The exit code; what is shown until then is read, or a full terminal would keep the program from ending."""
        end = time.monotonic() + 40
        while self.process.poll() is None:
            assert time.monotonic() < end, self.seen[-2000:]
            if select.select([self.operator], [], [], 0.05)[0]:
                self.seen += os.read(self.operator, 65536)
        while select.select([self.operator], [], [], 0)[0]:
            self.seen += os.read(self.operator, 65536)
        return self.process.returncode

    def is_clean(self) -> bool:
        """Whether screen, cursor and modes are as before."""
        restored = self.seen.rfind(OFF) > self.seen.rfind(ON) and self.seen.rfind(SHOW) > self.seen.rfind(HIDE)
        return restored and termios.tcgetattr(self.modes) == self.before


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """Starts programs in terminals of their own; whatever still runs at the end is killed."""
    with contextlib.ExitStack() as undo:

        def start(*args: Any, **more: Any) -> Terminal:
            made = Terminal(*args, **more)
            undo.callback(finish, made)
            return made

        yield start


def finish(made: Terminal) -> None:
    made.process.kill()
    made.process.wait(30)
    for handle in (made.operator, made.modes):
        with contextlib.suppress(OSError):
            os.close(handle)


WATCH = [*AGENT, "watch"]


def living(context: Context) -> None:
    """Agents with something to tell, some of it nasty."""
    put(context.layout.memory / "identity" / "cedar" / "suffering.json", SUFFERING)
    event, facts = goal("goal.progressed", 0.4, objective=f"Explain {NASTY} the shop " + "and more " * 30)
    context.journal.append(event, RUN, facts)
    alive(context, call(1, f"fs_read{NASTY}", "a.py"))


def test_it_draws_again_at_every_size_and_leaves_a_clean_terminal(context, terminal):
    """Nothing of what agents say drives the terminal; a cursor key and Ctrl-Z do nothing, q ends it."""
    living(context)
    shown = terminal(WATCH, context.repo.root)
    shown.until(lambda seen: b"load 0.71" in seen, "first picture")
    shown.types(b"\x1b[A\x1a")
    put(context.layout.memory / "identity" / "cedar" / "suffering.json", {"active_stressors": []})
    shown.resize(34, 10)
    shown.until(lambda seen: b"load 0.00" in seen, "second picture")
    shown.types(b"q")
    assert shown.ended() == 0
    assert shown.is_clean()
    codes = set(re.findall(rb"\x1b(?:\[[0-9;?]*[A-Za-z]|.)", shown.seen))
    moves = {code for code in codes if not code.endswith(b"m")}
    assert moves <= {ON, OFF, HIDE, SHOW, b"\x1b[H", b"\x1b[2J", b"\x1b[2K", b"\x1b[1A"}, moves
    assert b"\x07" not in shown.seen
    assert "\u202e" not in shown.seen.decode()
    last = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown.seen[shown.seen.rfind(b"\x1b[H") :]).decode()
    assert all(len(line.rstrip()) <= 34 for line in re.split(r"[\r\n]+", last))


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGHUP, b"\x03"], ids=["TERM", "HUP", "Ctrl-C"])
def test_a_signal_leaves_a_clean_terminal(context, terminal, stop):
    shown = terminal(WATCH, context.repo.root)
    shown.until(lambda seen: b"No agent" in seen, "picture")
    if isinstance(stop, bytes):
        shown.types(stop)
    else:
        shown.process.send_signal(stop)
    assert shown.ended() == 0
    assert shown.is_clean()
    assert b"Traceback" not in shown.seen


def test_a_terminal_that_is_closed_ends_it(context, terminal):
    shown = terminal(WATCH, context.repo.root)
    shown.until(lambda seen: b"No agent" in seen, "picture")
    os.close(shown.modes)
    os.close(shown.operator)
    assert shown.process.wait(30) == 0


def test_a_fault_leaves_a_clean_terminal_and_is_told(tmp_path, terminal):
    code = (
        f"import sys; sys.path.insert(0, {str(PROJECT)!r})\nfrom agents import screen\nfrom agents.watchview import Line\n"
        "pictures = iter([[Line('one picture')]])\nscreen.run(lambda columns, rows: next(pictures), every=0.1)\n"
    )
    shown = terminal([sys.executable, "-c", code], tmp_path)
    assert shown.ended() == 1
    assert shown.is_clean()
    assert b"one picture" in shown.seen
    assert b"StopIteration" in shown.seen[shown.seen.rfind(OFF) :]


def test_without_a_terminal_that_can_draw_it_prints_once(context, terminal):
    living(context)
    shown = terminal(WATCH, context.repo.root, TERM="dumb")
    assert shown.ended() == 0
    assert b"load 0.71" in shown.seen
    assert b"\x1b" not in shown.seen


@pytest.mark.parametrize("words", [[], ["--once"], ["--json"]])
def test_in_a_pipe_it_prints_once(context, agent, words):
    living(context)
    done = agent("watch", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    if words == ["--json"]:
        assert json.loads(done.stdout)["agents"][0]["band"] == "high"
    else:
        assert "cedar   load 0.71 [########--] high" in done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 100


def test_looking_writes_nothing(context, agent):
    assert agent("watch").returncode == 0
    assert not context.layout.data.exists()
