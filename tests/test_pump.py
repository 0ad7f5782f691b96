"""A living run through the real command line: every byte kept, every limit held, nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import fakes, world
from tests.support.fakes import INIT, call, do, history, result, say
from tests.support.world import eventually, runs_now, state_of, status_is, stream_of

if TYPE_CHECKING:
    from pathlib import Path

SUPERVISOR_RSS = 150 * 1024 * 1024
"""Bytes of memory that a supervisor may use whatever its agent prints."""


def peak_memory(argv: list[str], repo: Path) -> tuple[int, int]:
    """Exit code of the command line *argv*, and the peak memory in bytes of it or its largest child."""
    source = (
        "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, "
        "stderr=subprocess.DEVNULL); print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", source, *world.AGENT, *argv], cwd=repo, capture_output=True, timeout=110
    )
    code, kilobytes = map(int, done.stdout.split())
    return code, kilobytes * 1024


class TestEvidence:
    def test_the_stream_is_what_the_agent_said_and_every_event_is_a_sign_of_life(self, agent, repo, tmp_path) -> None:
        """T134: raw stream byte-identical to stdout, and the heartbeat moves with it."""
        steps = [INIT, say("one"), do("wait", seconds=1.2), say("two"), result()]
        agent("scout", "x", *history(tmp_path / "h", *steps))
        said = "".join(json.dumps(step) + "\n" for step in steps if "do" not in step)
        assert stream_of(repo) == said.encode()
        state = state_of(repo)
        assert state["events"] == 4
        assert state["started_at"] < state["last_heartbeat"] <= state["ended_at"]

    def test_the_heartbeat_moves_while_it_runs(self, background, repo, tmp_path) -> None:
        """T134: at most once a second, but it moves."""
        steps = [step for number in range(200) for step in (say(str(number)), do("wait", seconds=0.2))]
        background("scout", "x", *history(tmp_path / "h", INIT, *steps))
        eventually(runs_now(repo))
        first = eventually(lambda: state_of(repo)["last_heartbeat"])
        eventually(lambda: state_of(repo)["last_heartbeat"] > first)

    @pytest.mark.parametrize(
        "odd",
        [b"\0\0\n", b"\xff\xfe broken \x80\n", b"not json\n", b"[1, 2]\n", b"null\n", b"\n\n", b"[" * 100_000 + b"\n",
         b'{"type": {"x": 1}}\n', b'{"type":"assistant","message":7}\n', b"a\rb\xc2\x85c\xe2\x80\xa8d\n"],
    )  # fmt: skip
    def test_a_line_that_is_no_event_is_kept_and_the_run_goes_on(self, odd: bytes, agent, repo, tmp_path) -> None:
        """T135: NUL, broken UTF-8, foreign JSON, nesting without end: in the record, not in the way."""
        steps = [INIT, do("raw", hex=odd.hex()), result("# Fine\n")]
        done = agent("scout", "x", *history(tmp_path / "h", *steps))
        assert (done.returncode, done.stdout) == (0, "# Fine\n\n")
        assert odd in stream_of(repo)
        assert state_of(repo)["events"] == 2 + odd.count(b"\n")

    def test_half_a_line_at_the_end_is_kept(self, agent, repo, tmp_path) -> None:
        """T135, P20: it is evidence, though no event."""
        half = b'{"type":"assistant","mess'
        agent("scout", "x", *history(tmp_path / "h", INIT, result(), do("raw", hex=half.hex())))
        assert stream_of(repo).endswith(half)
        assert state_of(repo)["status"] == "DONE"
        assert state_of(repo)["events"] == 3

    def test_a_flood_on_stderr_does_not_stop_the_agent(self, agent, repo, tmp_path) -> None:
        """P09: it is read all the time; a pipe nobody reads would hold the agent for ever."""
        source = "for _ in range(64): sys.stderr.write('e' * 65536)\nprint('done')"
        done = agent("scout", "x", *fakes.command(tmp_path / "a.py", source))
        assert (done.returncode, done.stdout.strip()) == (0, "done")
        assert (repo / ".agents/latest/raw/stderr.log").stat().st_size == 64 * 65536

    @pytest.mark.slow
    def test_a_line_of_100_mb_costs_no_memory(self, repo, tmp_path) -> None:
        """P15: kept byte-exact, never parsed."""
        source = (
            "out = sys.stdout.buffer\nfor _ in range(100): out.write(b'x' * 1048576)\n"
            f"out.write(b'\\n' + {json.dumps(result())!r}.encode() + b'\\n')"
        )
        code, peak = peak_memory(["scout", "x", "--engine", "command", "--", *fakes.program(tmp_path / "a.py", source)], repo)  # fmt: skip
        assert code == 0
        assert (repo / ".agents/latest/raw/stream.jsonl").stat().st_size > 100 * 1024 * 1024
        assert peak < SUPERVISOR_RSS

    @pytest.mark.slow
    def test_a_flood_costs_no_memory(self, repo, tmp_path) -> None:
        """P14: 300 MB of short lines."""
        source = 'line = b\'{"type":"noise"}\\n\' * 65536\nfor _ in range(269): sys.stdout.buffer.write(line)'
        code, peak = peak_memory(["scout", "x", "--engine", "command", "--", *fakes.program(tmp_path / "a.py", source)], repo)  # fmt: skip
        size = (repo / ".agents/latest/raw/stream.jsonl").stat().st_size
        shutil.rmtree(repo / ".agents")
        assert code == 0
        assert size == 269 * 65536 * 17
        assert peak < SUPERVISOR_RSS


class TestEnds:
    def test_a_grandchild_that_holds_the_output_is_not_waited_for(self, agent, repo, tmp_path, mark) -> None:
        """P07: the agent's end is the end, whoever keeps its pipe."""
        source = (
            "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)', sys.argv[1]])\nprint('answer')"
        )
        done = agent("scout", "x", *fakes.command(tmp_path / "a.py", source, mark), timeout=60)
        assert (done.returncode, done.stdout.strip()) == (0, "answer")
        assert world.tree_of(mark) == []

    def test_an_agent_that_closes_its_output_goes_on(self, agent, repo, tmp_path) -> None:
        """P08: a closed pipe is not an exit."""
        source = "print('said', flush=True); os.close(1); time.sleep(1.5); os._exit(5)"
        done = agent("scout", "x", *fakes.command(tmp_path / "a.py", source))
        assert done.returncode == 3
        assert (state_of(repo)["exit_code"], stream_of(repo)) == (5, b"said\n")

    def test_one_that_hangs_after_its_result_is_done(self, agent, repo, tmp_path) -> None:
        """P13: it has given its result; what keeps it is its own affair, and is ended."""
        (repo / "agent.yaml").write_text("linger: 1s\n")
        done = agent("scout", "x", *history(tmp_path / "h", INIT, result("# Good\n"), do("wait", seconds=300)), timeout=60)  # fmt: skip
        assert (done.returncode, state_of(repo)["status"]) == (0, "DONE")
        assert "# Good" in done.stdout
        assert any("after its result" in note for note in state_of(repo)["notes"])

    def test_a_run_has_its_time(self, agent, repo, tmp_path) -> None:
        """T137: timeout; its last artifact is named."""
        done = agent("scout", "x", "--timeout", "1s", *history(tmp_path / "h", INIT, do("wait", seconds=300)))
        failure = state_of(repo)["failure"]
        assert (done.returncode, state_of(repo)["status"], failure["kind"]) == (3, "CRASHED", "timeout")
        assert (repo / ".agents/latest" / failure["last_safe_artifact"]).is_file()

    @pytest.mark.parametrize("size", [100, 1_000_000])
    def test_output_has_its_limit(self, size: int, agent, repo, tmp_path) -> None:
        """P14: ended at the limit, whether it floods or has already gone when the limit is reached."""
        source = f"sys.stdout.write('x' * {size} * 50)"
        words = fakes.command(tmp_path / "a.py", source)
        done = agent("scout", "x", "--max-output", str(size), *words)
        assert (done.returncode, state_of(repo)["failure"]["kind"]) == (3, "output_limit")
        assert (repo / ".agents/latest/raw/stream.jsonl").stat().st_size == size

    def test_a_guard_killed_by_an_agent_that_goes_on_talking(self, agent, repo, tmp_path, mark) -> None:
        """P03: without its guard it is ended at once, and its flood is not read to its end."""
        source = "os.kill(os.getppid(), 9)\nwhile True: sys.stdout.write('x' * 65536)"
        done = agent("scout", "x", *fakes.command(tmp_path / "a.py", source, mark), timeout=60)
        assert (done.returncode, state_of(repo)["failure"]["kind"]) == (3, "agent_abort")
        assert world.tree_of(mark) == []

    def test_a_guard_stopped_by_its_agent_is_woken_and_tells_the_end(self, agent, repo, tmp_path) -> None:
        """P28: the run does not wait for the limit of silence."""
        source = "os.kill(os.getppid(), signal.SIGSTOP); print('bye'); sys.exit(4)"
        done = agent("scout", "x", *fakes.command(tmp_path / "a.py", source), timeout=60)
        assert (done.returncode, state_of(repo)["exit_code"]) == (3, 4)


class TestSilence:
    def test_a_silent_run_is_reaped_and_can_be_resumed(self, agent, repo, tmp_path, mark) -> None:
        """T141: STALLED means dead and resumable; P11."""
        quiet = f"{fakes.EVIL_TREE}\ntime.sleep(300)"
        done = agent("scout", "x", "--stall-after", "1s", *fakes.command(tmp_path / "a.py", quiet, mark), env={"AGENT_BOX_GRACE": "200ms"})  # fmt: skip
        state = state_of(repo)
        assert (done.returncode, state["status"], state["failure"]["kind"]) == (3, "STALLED", "stalled")
        assert (state["pid"], world.tree_of(mark), world.published(repo)) == (None, [], [])
        (tmp_path / "a.py").write_text("print('here I am')")
        again = agent("resume", "latest")
        assert (again.returncode, state_of(repo)["status"], state_of(repo)["attempt"]) == (0, "DONE", 2)

    def test_a_run_that_is_only_marked_wakes_at_its_next_event(self, background, repo, tmp_path) -> None:
        """T141: with on_stall mark the process is left alone, and its next event makes it ACTIVE again."""
        go = tmp_path / "go"
        source = f"print('a', flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.05)\nprint('b', flush=True)\nwhile os.path.exists({str(go)!r}): time.sleep(0.05)"
        env = {"AGENT_BOX_ON_STALL": "mark", "AGENT_BOX_STALL_AFTER": "1s"}
        run = background("scout", "x", *fakes.command(tmp_path / "a.py", source), env=env)
        eventually(status_is(repo, "STALLED"))
        assert world.runs_now(repo)()
        go.touch()
        eventually(status_is(repo, "ACTIVE"))
        assert state_of(repo)["failure"] is None
        go.unlink()
        assert run.wait(30) == 0
        assert [entry["event"] for entry in world.ledger_of(repo)] == ["run.started", "run.stalled", "run.resumed", "run.finished"]  # fmt: skip

    @pytest.mark.parametrize(
        ("in_flight", "works", "status"), [(True, True, "DONE"), (True, False, "STALLED"), (False, True, "STALLED")]
    )
    def test_a_busy_child_of_a_tool_call_is_not_silence(self, in_flight, works, status, agent, repo, tmp_path) -> None:
        """P11: a long tool call is forgiven as long as its tree works; work without a call is not."""
        steps = [INIT, *([call("Bash")] if in_flight else [])]
        words = [json.dumps(step) for step in steps]
        source = f"""
for line in {words!r}: print(line, flush=True)
end = time.monotonic() + 7
while time.monotonic() < end: {"pass" if works else "time.sleep(7)"}
print({json.dumps(result())!r}, flush=True)
"""
        plugin = fakes.program(tmp_path / "a.py", source)
        path = fakes.engine(tmp_path, plugin)
        agent(
            "scout",
            "x",
            "--engine",
            "told",
            "--stall-after",
            "3s",
            env={"PYTHONPATH": str(path)},
            launch=world.OPEN_AGENT,
        )
        assert state_of(repo)["status"] == status


def spoken(number: int, **more: Any) -> dict[str, Any]:
    """One turn of a model: a message with an id and a usage of its own."""
    message = {"id": f"m{number}", "content": f"step {number}", "usage": {"input_tokens": 100, "output_tokens": 10}}
    return {"type": "assistant", "message": message, **more}


def working(count: int, seconds: float = 0.2) -> list[dict[str, Any]]:
    """*count* turns with a pause after each."""
    return [step for number in range(count) for step in (spoken(number), do("wait", seconds=seconds))]


class TestBudgets:
    @pytest.mark.parametrize(
        ("env", "option"),
        [({"AGENT_BOX_MAX_TURNS": "3"}, "--max-turns"), ({"AGENT_BOX_MAX_TOKENS": "350"}, "--max-tokens")],
        ids=["turns", "tokens"],
    )
    def test_a_spent_budget_is_no_end(self, env, option, agent, repo, tmp_path) -> None:
        """T137: P12: ended cleanly as `budget`, the next command named, and resumed with more it goes on to its end."""
        words = history(tmp_path / "h", INIT, *working(100))
        done = agent("scout", "x", *words, env=env)
        state = state_of(repo)
        assert (done.returncode, state["status"], state["failure"]["kind"]) == (3, "CRASHED", "budget")
        assert f"./agent resume {world.meta_of(repo)['short_id']} {option} N" in done.stderr
        assert state["session_id"] == fakes.SESSION
        assert world.published(repo) == []
        history(tmp_path / "h", INIT, *working(5, 0), result())
        again = agent("resume", "latest", env=dict.fromkeys(env, "1000"))
        assert (again.returncode, state_of(repo)["status"], state_of(repo)["failure"]) == (0, "DONE", None)

    def test_what_was_used_is_kept_and_shown(self, agent, repo, tmp_path) -> None:
        """T152: tokens, turns and cost in state, ledger, dashboard and in what is said at the end."""
        usage = {"input_tokens": 12_000, "output_tokens": 345, "service_tier": "standard"}
        end = result(num_turns=3, total_cost_usd=0.0412, usage=usage)
        done = agent("scout", "x", *history(tmp_path / "h", INIT, *working(3, 0), end))
        expected = {"input_tokens": 12_000, "output_tokens": 345, "turns": 3, "cost_usd": 0.0412}
        assert state_of(repo)["usage"] == expected
        assert world.ledger_of(repo)[-1]["facts"]["usage"] == expected
        for shown in (done.stderr, (repo / ".agents/INDEX.md").read_text(), agent("show", "latest").stdout):
            assert "12.3k tok · $0.04" in shown

    def test_what_a_dead_run_used_is_known_from_its_stream(self, background, agent, repo, tmp_path) -> None:
        """C08: a supervisor that was killed takes nothing of it along."""
        run = background("scout", "x", *history(tmp_path / "h", INIT, *working(4, 0), do("wait", seconds=300)))
        eventually(lambda: runs_now(repo)() and stream_of(repo).count(b"input_tokens") == 4)
        run.kill()
        run.wait()
        agent("status")
        eventually(status_is(repo, "CRASHED"))
        assert state_of(repo)["usage"] == {"input_tokens": 400, "output_tokens": 40, "turns": 4}

    def test_an_agent_that_goes_in_circles_is_ended(self, agent, repo, tmp_path) -> None:
        """P12: a read-only run changes nothing, so the same call with the same answer is no progress."""
        steps = [
            step for _ in range(200) for step in (call("Grep", pattern="x"), fakes.answered(), do("wait", seconds=0.05))
        ]
        done = agent("scout", "x", *history(tmp_path / "h", INIT, *steps))
        failure = state_of(repo)["failure"]
        assert (done.returncode, state_of(repo)["status"], failure["kind"]) == (3, "CRASHED", "no_progress")
        assert "Grep(x)" in failure["message"]

    def test_no_run_goes_on_where_the_disk_is_nearly_full(self, agent, repo, tmp_path) -> None:
        """C17: `quota`, before the disk is full; no disk has as much space as this asks for."""
        words = history(tmp_path / "h", INIT, do("wait", seconds=300))
        done = agent("scout", "x", *words, env={"AGENT_BOX_MIN_FREE": "1000000TiB"})
        assert (done.returncode, state_of(repo)["failure"]["kind"]) == (3, "quota")


class TestInterrupts:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_to_the_supervisor_stops_the_run(self, number, background, repo, tmp_path, mark) -> None:
        """T138: child dead, commands gone, STOPPED; C25."""
        run = background("scout", "x", *fakes.command(tmp_path / "a.py", fakes.EVIL_TREE + "\ntime.sleep(300)", mark), env={"AGENT_BOX_GRACE": "200ms"})  # fmt: skip
        eventually(lambda: runs_now(repo)() and len(world.tree_of(mark)) >= fakes.EVIL_COUNT + 3)
        assert world.published(repo)
        run.send_signal(number)
        assert run.wait(60) == 2
        assert (state_of(repo)["status"], state_of(repo)["failure"]) == ("STOPPED", None)
        assert (world.tree_of(mark), world.published(repo)) == ([], [])

    def test_the_second_one_means_now(self, background, repo, tmp_path, mark) -> None:
        """C23: the first asks politely and waits for the grace, the second does not wait."""
        deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(300)"
        run = background("scout", "x", *fakes.command(tmp_path / "a.py", deaf, mark), env={"AGENT_BOX_GRACE": "300s"})
        eventually(lambda: runs_now(repo)() and stream_of(repo))
        run.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert run.poll() is None, "it waits for the grace"
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 2
        assert (state_of(repo)["status"], world.tree_of(mark)) == ("STOPPED", [])

    def test_one_that_comes_before_the_agent_runs_keeps_it_from_running(self, background, repo, tmp_path, mark) -> None:
        """C23: whenever it comes, either nothing was claimed or the run says that it was stopped."""
        ran = tmp_path / "ran"
        words = fakes.command(tmp_path / "a.py", f"open({str(ran)!r}, 'w'); time.sleep(300)", mark)
        run = background("scout", "x", *words)
        eventually(lambda: world.boxes(repo))
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 2
        assert state_of(repo, world.boxes(repo)[0])["status"] == "STOPPED"
        assert world.tree_of(mark) == []


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 24 MB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)], capture_output=True)
    if done.returncode:
        pytest.skip("mounting is not allowed here")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


NO_RESERVE = {"AGENT_BOX_MIN_FREE": "1"}
"""What a run asks for by itself is more than such a disk has."""


class TestFullDisk:
    def test_an_agent_whose_words_fill_the_disk(self, agent, small_disk, tmp_path, mark) -> None:
        """C17: it is ended, the run says why, and the ledger is whole; C16."""
        repo = world.make_repo(small_disk / "repo")
        words = fakes.command(tmp_path / "a.py", "while True: sys.stdout.write('x' * 65536)", mark)
        done = agent("scout", "x", *words, cwd=repo, env=NO_RESERVE)
        state = state_of(repo)
        assert (done.returncode, state["status"], state["failure"]["kind"]) == (4, "CRASHED", "enospc")
        assert "Traceback" not in done.stderr
        assert "No space left" in done.stderr
        assert (world.tree_of(mark), world.published(repo)) == ([], [])
        assert agent("verify", cwd=repo).returncode == 0

    def test_an_agent_that_fills_the_disk_with_its_files(self, agent, small_disk, tmp_path, mark) -> None:
        """C17: the heartbeat cannot be written, so the agent is ended; what was reserved holds the end of the run."""
        repo = world.make_repo(small_disk / "repo")
        source = f"""
print("filling", flush=True)
with open({str(small_disk / "fill")!r}, "wb", buffering=0) as file:
    try:
        while True: file.write(b"x" * 4096)
    except OSError:
        pass
while True:
    print("still here", flush=True)
    time.sleep(0.2)
"""
        done = agent("scout", "x", *fakes.command(tmp_path / "a.py", source, mark), cwd=repo, env=NO_RESERVE)
        state = state_of(repo)
        assert (done.returncode, state["status"], state["failure"]["kind"]) == (4, "CRASHED", "enospc")
        assert "Traceback" not in done.stderr
        assert world.tree_of(mark) == []

    def test_no_run_is_started_where_its_end_could_not_be_written(self, agent, small_disk, tmp_path) -> None:
        """C16: refused with a hint, and nothing is claimed."""
        repo = world.make_repo(small_disk / "repo")
        (small_disk / "fill").write_bytes(b"x" * 12 * 1024 * 1024)
        done = agent("scout", "x", *history(tmp_path / "h", result()), cwd=repo)
        assert done.returncode == 4
        assert "agent gc" in done.stderr
        assert world.boxes(repo) == []
