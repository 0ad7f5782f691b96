"""`agent live`: when agents live, how they rest, what stops them, and the lines that the dashboard has for them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import portraits, probe, pulse, views
from agents.layout import Layout
from agents.model import Status
from agents.pulse import Ended, Pulse, Sight
from tests.support.lives import Small, outcome
from tests.support.ollama_server import MODEL, OllamaServer
from tests.support.world import PROJECT, boxes, eventually, git, ledger_of, meta_of, state_of

if TYPE_CHECKING:
    from pathlib import Path

STEP = 'n = count(agent); write(own / f"{n}.md", str(n)); end("goal-" + agent)'
HANG = 'write(own / "half.md", "half"); print("waiting", flush=True); time.sleep(300)'


@pytest.fixture
def small(tmp_path):
    return Small(tmp_path / "small")


@pytest.fixture
def run(small, agent):
    return small.runner(agent)


def waiting(repo: Path, count: int):
    """A condition: *count* cycles are at work and say so."""

    def condition() -> bool:
        streams = [box / "raw" / "stream.jsonl" for box in boxes(repo)]
        return sum(stream.exists() and b"waiting" in stream.read_bytes() for stream in streams) >= count

    return condition


# --- When the next cycle begins ---------------------------------------------------------------------------------------

GOOD, BAD = Ended(status=Status.DONE), Ended(status=Status.CRASHED)


@pytest.mark.parametrize(
    ("ended", "took", "due"),
    [
        (GOOD, 1.0, 106.0),
        (GOOD, 20.0, 120.0),
        (Ended(status=Status.REVIEW), 1.0, 106.0),
        (Ended(status=Status.STOPPED), 1.0, 106.0),
        (BAD, 1.0, 106.0),
    ],
)
def test_a_heartbeat_lies_between_the_beginnings_of_two_cycles(ended, took, due):
    after, rest = pulse.after(Pulse(agent="cedar"), ended, 100.0, 100.0 + took, 6.0)
    assert (after.due, rest) == (due, 0.0)


def lived(*ends: Ended) -> tuple[Pulse, list[float]]:
    """The pulse after cycles that ended like *ends*, each begun as soon as it was due, and the rests on the way."""
    now, rests = Pulse(agent="cedar"), []
    for ended in ends:
        now, rest = pulse.after(now, ended, now.due, now.due + 1, 6.0)
        rests.append(rest)
    return now, rests


def test_three_crashes_in_a_row_are_followed_by_a_rest_with_an_end():
    """W20: whoever stalls comes back at an instant that is known."""
    refused, stalled = Ended(status=None), Ended(status=Status.STALLED)
    assert lived(BAD, BAD, GOOD, BAD, BAD)[1] == [0.0] * 5
    assert lived(BAD, refused, stalled)[1] == [0.0, 0.0, 60.0]
    assert lived(*[BAD] * 9)[1] == [0.0, 0.0, 60.0, 0.0, 0.0, 120.0, 0.0, 0.0, 240.0]
    assert lived(*[BAD] * 6, GOOD, *[BAD] * 3)[1][-1] == 60.0
    assert max(lived(*[BAD] * 60)[1]) == 600.0


def test_a_model_that_is_away_is_asked_at_growing_intervals():
    sight, waits, now = Sight(), [], 0.0
    for _ in range(8):
        sight = sight.away(now)
        waits.append(sight.until - now)
        now = sight.until
    assert waits == [6.0, 12.0, 24.0, 48.0, 96.0, 192.0, 300.0, 300.0]
    # Three agents that find out at one moment are one miss.
    assert sight.away(now - 1) == sight


@settings(max_examples=50)
@given(st.lists(st.sampled_from([GOOD, BAD, Ended(status=None), Ended(status=Status.STOPPED)]), max_size=40))
def test_nobody_waits_longer_than_the_longest_rest(ends):
    now = Pulse(agent="cedar")
    for ended in ends:
        began = now.due
        now, rest = pulse.after(now, ended, began, began + 1, 6.0)
        assert began + 6 <= now.due <= began + 1 + pulse.LONGEST_REST
        assert (rest > 0) == (now.due > began + 6)
        assert now.crashes < pulse.CRASHES


def test_the_one_that_has_waited_longest_is_next():
    pulses = [Pulse(agent="a", due=5.0), Pulse(agent="b", due=3.0), Pulse(agent="c", due=9.0)]
    assert [getattr(pulse.next_due(pulses, now), "agent", None) for now in (2.0, 4.0, 8.0)] == [None, "b", "b"]


# --- Living -----------------------------------------------------------------------------------------------------------


def test_all_agents_live_side_by_side_and_stop_when_their_cycles_are_done(run, small, repo):
    small.does(STEP)
    done = run("live", "--cycles", "4", "--heartbeat", "0s", "--mind", "reflex", "--json")
    told = outcome(done)
    assert (done.returncode, told["cycles"], told["stopped"]) == (0, 4, False)
    assert {state_of(repo, box)["status"] for box in boxes(repo)} == {"DONE"}
    assert {meta_of(repo, box)["agent"] for box in boxes(repo)} == {"cedar", "cipher", "vault"}
    names = git(repo, "ls-tree", "-r", "--name-only", "agent-box/commons", "--", "workspace").split()
    assert len(names) == 4
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "worktree", "list").count("\n") == 1
    assert run("verify").returncode == 0


@pytest.mark.slow
def test_progress_is_said_and_a_complete_goal_is_named_at_the_end(run, small):
    small.does(STEP.replace("end(", 'fact("goal.completed", goal_id="goal-cedar"); end('))
    done = run("live", "--agents", "cedar", "--cycles", "1", "--mind", "reflex")
    assert done.returncode == 0
    line = next(line for line in done.stderr.splitlines() if line.startswith("cedar"))
    assert "REVIEW" in line
    assert "progressed" in line
    assert done.stdout.splitlines()[0] == "1 cycles"
    assert "./agent merge " in done.stdout


@pytest.mark.slow
def test_an_agent_that_only_crashes_rests_and_the_end_of_it_is_said(run, small):
    small.does("sys.exit(3)")
    done = run("live", "--agents", "cedar", "--cycles", "3", "--heartbeat", "0s", "--mind", "reflex")
    assert done.returncode == 0
    assert "cedar: 3 cycles in a row failed; it rests until " in done.stderr
    assert done.stderr.count("CRASHED") == 3


@pytest.mark.slow
def test_ctrl_c_stops_the_cycles_and_a_restart_loses_nothing(run, small, repo):
    small.does(HANG)
    with small.background(repo, "live", "--agents", "cedar,vault", "--mind", "reflex", AGENT_BOX_GRACE="1s") as alive:
        eventually(waiting(repo, 2))
        refused = run("live", "--cycles", "1")
        assert (refused.returncode, "live already" in refused.stderr) == (2, True)
        os.killpg(alive.pid, signal.SIGINT)
        assert alive.wait(30) == 2
    assert [state_of(repo, box)["status"] for box in boxes(repo)] == ["STOPPED", "STOPPED"]
    assert all("half.md" in (box / "changes.patch").read_text() for box in boxes(repo))
    small.does(STEP)
    assert run("live", "--agents", "cedar,vault", "--cycles", "2", "--mind", "reflex").returncode == 0
    assert git(repo, "worktree", "list").count("\n") == 1


@pytest.mark.slow
def test_cycles_do_not_outlive_a_life_that_was_killed(run, small, repo):
    small.does(HANG)
    with small.background(repo, "live", "--agents", "cedar", "--mind", "reflex", AGENT_BOX_GRACE="1s"):
        eventually(waiting(repo, 1))
    eventually(lambda: state_of(repo)["status"] == "STOPPED")
    small.does(STEP)
    assert run("live", "--agents", "cedar", "--cycles", "1", "--mind", "reflex").returncode == 0


# --- The model --------------------------------------------------------------------------------------------------------


def asked_to_unload(server: OllamaServer) -> list[dict]:
    return [each.body for each in server.requests if each.path == "/api/generate"]


def test_the_model_is_let_go_when_the_agents_stop(run, small, repo):
    small.does(STEP)
    with OllamaServer(turns=[], models=[MODEL]) as server:
        done = run("live", "--agents", "cedar", "--cycles", "1", env={"OLLAMA_HOST": server.url})
        assert done.returncode == 0, done.stderr
        assert asked_to_unload(server) == [{"model": MODEL, "keep_alive": 0}]
    assert len(boxes(repo)) == 1


@pytest.mark.slow
def test_without_a_model_no_server_is_asked_to_unload_one(run, small):
    small.does(STEP)
    with OllamaServer(turns=[], models=[MODEL]) as server:
        run("live", "--agents", "cedar", "--cycles", "1", "--mind", "reflex", env={"OLLAMA_HOST": server.url})
        assert server.requests == []


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:11434", True),
        ("http://localhost:1", True),
        ("http://[::1]:1", True),
        ("http://127.8.8.8", True),
        ("http://192.168.1.7:11434", False),
        ("https://127.0.0.1.example.org", False),
        ("http://localhost.example.org", False),
    ],
)
def test_only_a_server_on_this_machine_is_asked_to_unload(url, here):
    assert probe.is_here(url) is here


def test_nobody_there_is_no_error_of_unloading():
    assert probe.unload("http://127.0.0.1:9", MODEL) is False
    assert probe.unload("http://192.0.2.1:9", MODEL) is False


def test_while_the_model_is_away_nobody_lives_and_it_is_said_once(small, repo):
    small.does(STEP)
    with small.background(repo, "live", "--mind", "ollama") as alive:
        assert alive.stdout is not None
        said = iter(alive.stdout.readline, b"")
        first = next(line for line in said if b"the model is away" in line)
        assert b"6 s up to every 300 s" in first
        time.sleep(0.5)
        alive.send_signal(signal.SIGTERM)
        assert alive.wait(30) == 2
        assert [line for line in said if b"away" in line] == []
    assert boxes(repo) == []


@pytest.mark.slow
def test_a_cycle_that_waited_makes_all_wait(run, small, repo):
    small.does('end(None, "waiting", turns=0)')
    with small.background(repo, "live", "--agents", "cedar", "--heartbeat", "0s", "--mind", "reflex") as alive:
        assert alive.stdout is not None
        assert any(b"the model is away" in line for line in iter(alive.stdout.readline, b""))
        time.sleep(0.8)
        assert len(boxes(repo)) == 1
        alive.send_signal(signal.SIGTERM)
        assert alive.wait(30) == 2


# --- The head of the dashboard ----------------------------------------------------------------------------------------

STRESSOR = {"type": "futility", "severity": 0.41}


def test_a_line_shows_load_band_and_goal():
    goals = {"active": {"objective": "survey the cart", "metrics": {"progress": 0.4}}}
    found = portraits.line("cedar", {"active_stressors": [STRESSOR]}, goals)
    assert found == 'cedar   load 0.41 [#####-----] present · goal 0.40 "survey the cart"'


@pytest.mark.parametrize(
    ("severities", "shown"),
    [
        ([], "load 0.00 [----------] · no goal"),
        ([0.349], "load 0.35 [####------] · no goal"),
        ([0.35], "load 0.35 [####------] present · no goal"),
        ([0.35, 0.2], "load 0.55 [######----] HIGH · no goal"),
        ([0.75], "load 0.75 [########--] HIGH, inward · no goal"),
        ([0.5, 0.4], "load 0.90 [#########-] CRISIS · no goal"),
        ([0.9, 0.9], "load 1.00 [##########] CRISIS · no goal"),
    ],
)
def test_bar_and_band(severities, shown):
    rows = [{"severity": each} for each in severities] + [{"severity": 0.9, "resolved": True}]
    assert portraits.line("cedar", {"active_stressors": rows}, None) == f"cedar   {shown}"


def test_a_goal_cannot_forge_a_line_nor_tell_a_secret():
    words = "ends ```\n# Runs\x1b[2J ghp_" + "a1B2" * 9
    found = portraits.line("cedar", {}, {"active": {"objective": words}})
    assert "\n" not in found
    assert "```" not in found
    assert "\x1b" not in found
    assert "a1B2a1B2a1B2" not in found
    assert len(found) < 200


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["active_stressors", "severity", "active", "objective", "metrics", "progress", "resolved"]), inner, max_size=4
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=50)
@given(anything, anything)
def test_whatever_the_files_hold_a_line_comes_out(suffering, goals):
    assert portraits.line("cedar", suffering, goals).startswith("cedar   load ")


def test_the_dashboard_has_three_lines_as_soon_as_an_agent_has_lived(tmp_path):
    layout = Layout(tmp_path)
    drawn = portraits.Portraits(layout)
    assert drawn.lines() == []
    folder = layout.memory / "identity" / "cedar"
    folder.mkdir(parents=True)
    folder.joinpath("suffering.json").write_text(json.dumps({"active_stressors": [STRESSOR]}))
    assert [line.split()[0] for line in drawn.lines()] == ["cedar"]
    for agent in ("cipher", "vault"):
        (layout.memory / "goals" / agent).mkdir(parents=True)
        (layout.memory / "goals" / agent / "snapshot.json").write_text("[1" if agent == "vault" else "{}")
    found = drawn.lines()
    assert [line.split()[0] for line in found] == ["cedar", "cipher"]
    page = views.index_md([], older=False, lives=found)
    assert page.startswith(f"# Agents\n\n```text\n{found[0]}\n{found[1]}\n```\n\n# Runs\n")
    assert views.index_md([], older=False).startswith("# Runs\n")


def test_a_changed_file_is_drawn_anew(tmp_path):
    layout = Layout(tmp_path)
    file = layout.memory / "identity" / "cedar" / "suffering.json"
    file.parent.mkdir(parents=True)
    drawn = portraits.Portraits(layout)
    for severity in (0.2, 0.45, 0.9):
        file.write_text(json.dumps({"active_stressors": [{"severity": severity, "note": "x" * int(100 * severity)}]}))
        assert f"load {severity:.2f}" in drawn.lines()[0]


def test_the_ledger_draws_the_agents_into_the_dashboard(run, small, repo):
    small.does("""
        folder = memory / "identity" / agent
        folder.mkdir(parents=True)
        (folder / "suffering.json").write_text(json.dumps({"active_stressors": [{"severity": 0.6}]}))
        end("goal-1")
    """)
    assert run("cycle", "vault").returncode == 0
    assert "vault   load 0.60 [######----] HIGH · no goal" in (repo / ".agents" / "INDEX.md").read_text()
    assert ledger_of(repo)[-1]["facts"]["cycle"] == {"goal": "goal-1", "outcome": "progressed"}


def test_a_supervisor_of_a_cycle_without_the_one_that_started_it_does_not_begin(repo):
    done = subprocess.run(
        [sys.executable, "-c", "from agents.cli import run; import sys; sys.exit(run(['cycle', 'cedar']))"],
        cwd=repo, env={**os.environ, "AGENT_BOX_LIVE": "1", "PYTHONPATH": str(PROJECT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, "is gone" in done.stderr) == (2, True)
    assert boxes(repo) == []
