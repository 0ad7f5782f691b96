"""Costs that are counted, not timed: no busy machine decides them (issue 5, noise-free gates)."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

import pytest

from benchmarks.material import Material
from tests.support import costs
from tests.support.cli import agent, environment, make_repository

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = ["--engine", "command", "--"]
LOOKS = frozenset({"pathlib"})
LIGHT = LOOKS | {"subprocess"}
PACKAGES = LIGHT | {"datetime", "difflib", "inspect", "platform", "shutil", "site", "typer", "typing", "uuid"}
# A verb to the heavy modules that it loads, and how many modules at most. A new one here is felt at every command of
# that kind: it must be worth it. From `gc` on there is room for a sweep: what was put aside may not be emptied yet. No
# verb but `demo` and the groups of verbs needs a package of others.
LOADED = [
    (["status"], frozenset(), 48),
    (["--help"], frozenset(), 40),
    (["init"], LOOKS, 130),
    (["list", "--all"], LOOKS, 130),
    (["status", "--json"], LOOKS, 130),
    (["scout", "x", *COMMAND, "true"], LIGHT, 195),
    (["plan", "x", "--dry-run", "--json", *COMMAND, "true"], LIGHT, 195),
    (["show"], LOOKS, 140),
    (["logs"], LIGHT, 180),
    (["stop"], LIGHT, 155),
    (["resume"], LIGHT, 195),
    (["replay"], LIGHT, 180),
    (["verify"], LOOKS, 147),
    (["gc", "--keep-runs", "500"], LIGHT, 180),
    (["fix", "x", *COMMAND, "sh", "-c", "echo x > made.txt"], LIGHT, 213),
    (["diff"], LIGHT, 205),
    (["reject"], LIGHT, 205),
    (["undo"], LIGHT, 205),
    (["merge"], LIGHT, 205),
    (["watch", "--once"], LOOKS | {"datetime"}, 165),
    (["goals"], LIGHT | {"shutil"}, 225),
    (["tell", "hello"], LIGHT | {"shutil"}, 225),
    (["requests", "list"], PACKAGES, 300),
    (["cycle", "nobody"], LIGHT | {"datetime"}, 205),
    (["live", "--agents", "nobody"], LIGHT | {"datetime"}, 195),
    (["cycle", "cedar", "--mind", "reflex", "--dry-run", "--json"], LIGHT | {"datetime"}, 205),
]
"""In this order, in one repository."""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path / "home", AGENT_BOX_TRUST_UNSANDBOXED="1")


def test_what_each_verb_loads_is_listed(repo: Path, env: dict[str, str]) -> None:
    """The imports on the path of every verb: a heavy one more must be a conscious change."""
    wrong = {}
    for words, heavy, most in LOADED:
        modules, code = costs.loaded(words, repo, env)
        assert code in (0, 2), (words, code)
        if modules & costs.HEAVY != heavy or len(modules) > most:
            wrong[" ".join(words)] = (sorted(modules & costs.HEAVY ^ heavy), len(modules), most)
    assert wrong == {}


LIVING = LIGHT | {"datetime", "sqlite3"}
# What hollow's own process loads for a run type: most of the README's first command was once its start.
STARTED = [("scout", LIVING, 220), ("review", LIVING, 220), ("fix", LIVING, 220), ("cycle", LIVING | {"inspect"}, 265)]


@pytest.mark.parametrize(("run_type", "heavy", "most"), STARTED, ids=[each[0] for each in STARTED])
def test_what_hollow_loads_is_listed(
    repo: Path, env: dict[str, str], run_type: str, heavy: frozenset[str], most: int
) -> None:
    """Every run of the built-in engine starts it: what it imports is felt as much as what a verb does."""
    state = repo.parent / "state"
    words = ["cycle", "--mind", "reflex", "--run-type", run_type, "--agent", "cedar", "--repo", str(repo)]
    words += ["--index", str(state / "index"), "--session-id", "c6d61bcc-e539-4f8b-9876-feafe31a8baa"]
    modules, code = costs.loaded([*words, "--state", str(state)], repo, env, "hollow", "where is the price?")
    assert code == 0
    assert modules & costs.HEAVY == heavy
    assert len(modules) <= most


def test_a_look_costs_the_same_calls_with_ten_and_with_ten_thousand_runs(tmp_path: Path, env: dict[str, str]) -> None:
    """`status`, and the supervisor of a run that does nothing: equal system calls whatever the history."""
    material = Material(tmp_path / "material")
    counted: dict[str, list[int]] = {"status": [], "status, files": [], "scout, files": []}
    for runs in (10, 10_000):
        place = material.history(runs)
        # The first one may have something to catch up with; it also gives both histories the same last run.
        assert agent(place, "scout", "x", *COMMAND, "true", home=tmp_path / "home").returncode == 0
        calls = costs.traced(["status"], place, env).splitlines()
        counted["status"].append(len(calls))
        counted["status, files"].append(sum(str(place) in call for call in calls))
        # Of the rest some depend on how busy the machine is: /proc is looked through for what a run left behind, and a run
        # that takes more than a second has a heartbeat. The fewest of some tries are what it costs.
        tries = (costs.traced(["scout", "x", *COMMAND, "true"], place, env).splitlines() for _ in range(3))
        counted["scout, files"].append(min(sum(str(place) in call for call in calls) for calls in tries))
    apart = {what: abs(few - many) for what, (few, many) in counted.items()}
    assert apart["status"] <= 12, counted
    assert apart["status, files"] <= 4, counted
    assert apart["scout, files"] <= 12, counted


GIT = {"scout": 10, "set-up": 11, "export": 7, "merge": 19, "undo": 11, "status": 0, "list --all": 1, "gc": 1}
"""Processes of git at most, the ledger's witness and the fingerprints of the checkout among them."""


def test_git_is_asked_as_seldom_as_it_can_be(repo: Path, env: dict[str, str], tmp_path: Path) -> None:
    """Processes of git per look, read-only run, set-up, export, merge, undo and removal of an airlock."""
    git = costs.Git(tmp_path / "bin", env)
    counted = {}
    for name, words in (
        ("scout", ["scout", "x", *COMMAND, "true"]),
        ("status", ["status"]),
        ("list --all", ["list", "-a"]),
    ):
        _, code = costs.loaded(words, repo, git.env)
        assert code == 0
        counted[name] = len(git.taken())
    # What was written a moment before the look at it is looked at once more when the airlock goes.
    work = f"echo agent >> '{git.log}'; echo x > made.txt; sleep 0.1"
    costs.loaded(["fix", "x", *COMMAND, "sh", "-c", work], repo, git.env)
    log = git.taken()
    counted["set-up"], counted["export"] = log.index("agent"), len(log) - log.index("agent") - 1
    patch = (repo / ".agents" / "latest" / "changes.patch").read_bytes()
    for name, words in (("merge", ["merge", "--approve", hashlib.sha256(patch).hexdigest()]), ("undo", ["undo"])):
        _, code = costs.loaded(words, repo, git.env)
        assert code == 0, name
        counted[name] = len(git.taken())
    costs.loaded(["fix", "x", *COMMAND, "sleep", "0.1"], repo, git.env)
    git.taken()
    _, code = costs.loaded(["gc"], repo, git.env)
    assert code == 0
    counted["gc"] = len(git.taken())
    assert list((repo / "agent_box" / "trees").iterdir()) == []
    assert {name: count for name, count in counted.items() if count > GIT[name]} == {}, counted
    assert (repo / "made.txt").exists() is False


def test_a_stream_is_written_once_and_the_state_seldom(repo: Path, env: dict[str, str], tmp_path: Path) -> None:
    """Ten thousand lines: bytes written beside the stream, and how often state.json is replaced."""
    stream = tmp_path / "lines"
    stream.write_bytes(b"".join(b"%06d %s\n" % (number, b"word " * 90) for number in range(10_000)))
    begun = time.monotonic()
    trace = costs.traced(
        ["scout", "x", *COMMAND, "cat", str(stream)], repo, env,
        "-e", "trace=write,pwrite64,writev,splice,sendfile,copy_file_range,rename,renameat,renameat2",
    )  # fmt: skip
    seconds = time.monotonic() - begun
    kept = repo / ".agents" / "latest" / "raw" / "stream.jsonl"
    assert kept.stat().st_size == stream.stat().st_size
    assert stream.stat().st_size < costs.written(trace) <= 1.05 * stream.stat().st_size
    states = sum(
        "rename" in call and 'state.json"' in call.partition(" = ")[0].rpartition(",")[2] for call in trace.splitlines()
    )
    assert 4 <= states <= 8 + seconds
