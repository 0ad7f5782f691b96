"""A sample of the crash matrix at every change, and checks that the matrix itself can find what it looks for."""

from __future__ import annotations

import fnmatch
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.crash import matrix, points, rules, scenarios, table, verdict, worlds
from tests.crash.children import Followed, KillChild
from tests.crash.kill import Kill
from tests.crash.model import Before, Point, World
from tests.support import needs
from tests.support.world import PROJECT, boxes

if TYPE_CHECKING:
    from tests.crash.model import Scenario

SCENARIOS = 2
"""Scenarios of one sample, beside the merge; AGENT_BOX_CRASH=all looks at every one."""
STRIKES = 3
"""Strikes at each of them."""
WORLD = World(Path("/w"))


def chosen() -> list[Scenario]:
    """The merge, and others that change with the source: over time the sample comes to all of them."""
    others = [each for each in scenarios.ALL if each.name != "merge"]
    if os.environ.get("AGENT_BOX_CRASH") == "all":
        return list(scenarios.ALL)
    step = turn()
    return [scenarios.named("merge"), *(others[(step + number * 7) % len(others)] for number in range(SCENARIOS))]


def turn() -> int:
    """A number that every change of the program makes another one, the same for every worker of a test run."""
    digest = hashlib.sha256()
    for path in sorted((PROJECT / "agents").rglob("*.py")):
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:4])


@pytest.fixture(scope="session")
def tracer() -> None:
    """A machine on which a program can be traced."""
    if why := points.why_not():
        needs.lacking(why)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world in which a fix waits for review."""
    made = World(tmp_path / "world")
    made.clear()
    worlds.fixed(made)
    return made


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("scenario", chosen(), ids=lambda each: each.name)
def test_a_kill_at_any_point_leaves_the_truth(tracer, tmp_path, scenario):
    """C11: killed between any two effects, the next status is true, nothing is lost, and the command can be repeated."""
    found = matrix.look(scenario, tmp_path / "look")
    missing = [each for each in scenario.expects if not fnmatch.filter(found.labels, each)]
    assert missing == [], f"the enumeration does not see {missing}"
    # Another part of the points with every change of the program.
    first = turn() % STRIKES
    at = points.spread(points.thinned(found.points)[first::STRIKES], STRIKES)
    verdicts = matrix.strike(scenario, Kill(), at, tmp_path / "strikes")
    assert [(each.label or each.point.label, each.wrong) for each in verdicts if each.wrong] == []
    assert any(each.hit for each in verdicts)


FOUND = {
    "reject": "write INDEX.jsonl (run.rejected)",
    "undo": "write INDEX.jsonl (run.undone)",
    "undo a pick": "write INDEX.jsonl (run.undone)",
}
"""Kills after which the ledger contradicted a state for ever, until their scenarios were struck."""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", FOUND)
def test_what_the_matrix_has_found_stays_mended(tracer, tmp_path, name):
    """C11: the state of a run has changed and the ledger does not know: the next status tells it."""
    scenario = scenarios.named(name)
    at = [each for each in matrix.look(scenario, tmp_path / "look").points if each.label == FOUND[name]]
    found = matrix.strike(scenario, Kill(), at, tmp_path / "strikes")
    assert found
    assert {(each.hit, each.label, each.wrong) for each in found} == {(True, FOUND[name], ())}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_guard_that_is_killed_is_noticed(tracer, tmp_path):
    """C11: nobody but the guard dies, its agent being at work: the command ends by itself, and nothing runs on."""
    scenario, by = scenarios.named("scout"), KillChild()
    at = [each for each in matrix.look(scenario, tmp_path / "look", by).points if each.label == "tell pid"]
    found = matrix.strike(scenario, by, at, tmp_path / "strikes")
    assert [(each.hit, each.label, each.code, each.wrong) for each in found] == [(True, "tell pid", 3, ())]


def seen(*lines: str) -> list[str]:
    return [each.label for each in points.read(lines, WORLD, ("git add",)) if each.label]


class TestPoints:
    """What strace says becomes labels that do not depend on the run."""

    def test_a_place_in_the_world_without_what_chance_chose(self):
        name = "26-11-22_0925__mend-it__8939"
        assert seen(
            f'mkdir("/w/repo/.agents/runs/{name}/raw", 0700) = 0',
            f'rename("/w/repo/.agents/staging/.state.json.2c9abdaea03c736a.tmp", "/w/repo/.agents/runs/{name}/x") = 0',
            'unlink("/w/repo/.claude/commands/run_8939/plan_8939.md") = 0',
            'link("/w/repo/.agents/staging/.8939.bece5cb23e8fe937.tmp", "/w/repo/.agents/active/8939") = 0',
            'unlinkat(5</w/repo/.agents/staging/gone>, "meta.yaml", 0) = 0',
            'mkdir("/w/home/state", 0777) = 0',
        ) == [
            "mkdir runs/<run>/raw",
            "rename runs/<run>/x",
            "unlink .claude/commands/run_<id>/<command>.md",
            "link active/<id>",
            "unlinkat staging/gone/meta.yaml",
            "mkdir ~/state",
        ]

    def test_what_is_written_is_told(self):
        state = '{\\n \\"status\\": \\"REVIEW\\",\\n \\"phase\\": \\"settled\\",\\n \\"pid\\": null'
        entry = '{\\"seq\\":2,\\"time\\":\\"2026\\",\\"event\\":\\"run.finished\\",\\"run\\":\\"x\\"'
        assert seen(
            f'write(7</w/repo/.agents/.state.json.2c9abdaea03c736a.tmp>, "{state}"..., 900) = 900',
            'rename("/w/repo/.agents/.state.json.2c9abdaea03c736a.tmp", "/w/repo/.agents/state.json") = 0',
            f'write(7</w/repo/.agents/INDEX.jsonl>, "{entry}"..., 900) = 900',
        ) == [
            "write .state.json.*.tmp (REVIEW settled)",
            "rename state.json (REVIEW settled)",
            "write INDEX.jsonl (run.finished)",
        ]

    def test_processes_by_the_names_of_their_programs(self):
        assert seen(
            "rt_sigprocmask(SIG_BLOCK, ~[RTMIN RT_1], [], 8) = 0",
            "vfork() = 17",
            "rt_sigprocmask(SIG_SETMASK, [], NULL, 8) = 0",
            "rt_sigprocmask(SIG_BLOCK, NULL, [], 8) = 0",
            'write(8<pipe:[1]>, "x", 1) = 1',
            "exit_group(0) = ?",
        ) == ["start git add", "while git add works", "feed git add", "exit"]

    @pytest.mark.parametrize(
        "line",
        [
            'mkdir("/w/repo/.agents", 0700) = -1 EEXIST (File exists)',
            'openat(AT_FDCWD</w/repo>, "/w/repo/a", O_RDONLY|O_CLOEXEC) = 3</w/repo/a>',
            'rename("/elsewhere/a", "/elsewhere/b") = 0',
            'write(2<pipe:[1]>, "said", 4) = 4',
            "--- SIGCHLD {si_signo=SIGCHLD} ---",
            "+++ exited with 0 +++",
        ],
    )
    def test_what_changes_nothing_is_no_point(self, line):
        assert seen(line) == []

    def test_a_call_is_counted_even_where_it_failed(self):
        lines = ['mkdir("/w/repo/a", 0700) = -1 EEXIST (File exists)', 'mkdir("/w/repo/b", 0700) = 0']
        assert [(each.nth, each.label) for each in points.read(lines, WORLD)] == [(1, ""), (2, "mkdir b")]

    def test_the_call_at_which_it_was_killed_has_no_result(self):
        assert seen('rename("/w/repo/a", "/w/repo/b") = ?') == ["rename b"]

    def test_programs_are_named_by_what_they_do(self):
        lines = [
            '1 execve("/usr/bin/python", ["python", "x"], 0x1 /* 9 vars */) = 0',
            "1 vfork( <unfinished ...>",
            '2 execve("/usr/bin/git", ["/usr/bin/git", "-C", "/w", "update-ref", "x"], 0x1 /* 9 vars */ <unfinished ...>',
            "1 <... vfork resumed>) = 2",
            "1 vfork() = 3",
            '3 execve("/usr/bin/python", ["python", "-IS", "/x/guard.py"], 0x1 /* 9 vars */) = 0',
        ]
        assert points.programs(lines) == ["git update-ref", "guard.py"]

    def test_of_repetitions_the_first_the_middle_and_the_last_are_kept(self):
        many = [Point("write", nth, "write x") for nth in range(1, 10)]
        once = Point("mkdir", 1, "mkdir y")
        assert points.thinned([*many[:5], once, *many[5:]]) == [many[0], many[4], once, many[8]]

    def test_a_sample_is_spread_from_the_first_to_the_last(self):
        many = [Point("write", nth, f"write {nth}") for nth in range(100)]
        assert [each.nth for each in points.spread(many, 4)] == [0, 33, 66, 99]
        assert points.spread(many[:2], 4) == many[:2]


class TestWhatIsFollowed:
    """A log of many processes is taken apart by process."""

    LINES = (
        '1 execve("/usr/bin/python", ["python", "/x/agents/__main__.py"], 0x1 /* 9 vars */) = 0',
        "1 vfork( <unfinished ...>",
        '2 execve("/usr/bin/python", ["python", "-IS", "/x/guard.py"], 0x1 /* 9 vars */ <unfinished ...>',
        "1 <... vfork resumed>) = 2",
        '1 mkdir("/w/repo/a", 0700 <unfinished ...>',
        "2 <... execve resumed>) = 0",
        "2 clone(child_stack=NULL) = 3",
        '3 execve("/usr/bin/python", ["python", "/x/scout.py"], 0x1 /* 9 vars */) = 0',
        "1 <... mkdir resumed>) = 0",
        '2 write(3<socket:[1]>, "pid 3 99\\n", 9) = 9',
        '4 execve("/x/guard.py", ["python", "/x/guard.py"], 0x1 /* 9 vars */) = -1 ENOENT (No such file)',
        '5 execve("/usr/bin/python", ["python", "/x/guard.py"], 0x1 /* 9 vars */) = 0',
    )

    def test_what_is_ours_is_numbered_and_the_command_is_none_of_it(self):
        followed = Followed()
        followed.add(self.LINES[:5])
        followed.add(self.LINES[5:])
        assert followed.ours == {"2": "guard 1", "5": "guard 2"}
        assert followed.started() == {"guard 1": ["scout.py"], "guard 2": []}

    def test_calls_are_whole_again_and_counted_in_each_by_itself(self):
        followed = Followed()
        followed.add(self.LINES)
        found = followed.seen("guard 1", WORLD, followed.started())
        assert [(each.call, each.nth, each.label) for each in found if each.label] == [
            ("clone", 1, "start scout.py"),
            ("write", 1, "tell pid"),
        ]
        assert 'mkdir("/w/repo/a", 0700) = 0' in followed.calls["1"]

    def test_of_each_process_every_label_is_struck(self):
        twice = [Point("write", 1, "tell pid", process=f"guard {number}") for number in (1, 2)]
        assert points.thinned(twice) == twice


class TestTheVerdictFinds:
    """A control for every rule: a world that is damaged on purpose must not pass."""

    @pytest.fixture
    def broken(self, world: World) -> tuple[World, Before]:
        """A sound world, and what stood in it."""
        before = Before.of(world)
        assert rules.standing(scenarios.named("fix"), world, before) == []
        assert verdict.litter(world) == []
        return world, before

    def test_what_is_damaged(self, broken):
        world, before = broken
        box, data = boxes(world.repo)[-1], world.repo / ".agents"
        ledger, tree = data / "INDEX.jsonl", world.repo / "agent_box" / "trees" / box.name
        (data / "INDEX.md").write_text("old\n")
        assert "dashboard" in self.broken_rules(world, before)
        whole = ledger.read_bytes()
        ledger.write_bytes(whole[: whole.rfind(b"\n", 0, -1) + 1])
        assert {"ledger", "runs"} <= self.broken_rules(world, before)
        ledger.write_bytes(whole + b'{"seq"')
        assert "ledger" in self.broken_rules(world, before)
        ledger.write_bytes(whole)
        (box / "changes.patch").write_bytes(b"")
        assert {"ledger", "runs"} <= self.broken_rules(world, before)
        tree.rename(tree.with_name("elsewhere"))
        (world.repo / worlds.EDITED).unlink()
        (world.repo / ".git" / "index.lock").touch()
        assert {"airlocks", "checkout"} <= self.broken_rules(world, before)
        box.rename(box.with_name("26-01-01_0000__other__abcd"))
        assert "runs" in self.broken_rules(world, before)

    def broken_rules(self, world: World, before: Before) -> set[str]:
        return {each.partition(":")[0] for each in rules.standing(scenarios.named("fix"), world, before)}

    def test_litter(self, broken):
        world, _ = broken
        box = boxes(world.repo)[-1]
        left = [
            ".agents/active/abcd", ".agents/staging/x", ".agents/.INDEX.md.0.tmp", ".claude/commands/run_abcd/x.md",
            ".git/refs/x.lock", f".agents/runs/{box.name}/private/reserve", "agent_box/verify/x",
        ]  # fmt: skip
        for name in left:
            path = world.repo / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        assert len(verdict.litter(world)) == len(left)


class TestTheTable:
    """docs/reliability.md is drawn from a run of the matrix."""

    def test_tells_of_every_scenario_and_of_no_other(self):
        rows = table.parsed(table.PAGE.read_text("utf-8"))
        assert [(row.name, row.about) for row in rows] == [(each.name, each.about) for each in scenarios.ALL]

    def test_is_read_as_it_was_drawn(self):
        rows = [table.Row("a", "first", 10, 8, {"kill": "8 of 8"}), table.Row("b", "second", 3, 3, {})]
        assert table.parsed(f"before\n{table.drawn(rows)}\nafter") == rows

    def test_from_before_a_pass_was_added_is_read_as_well(self):
        head = "| scenario | what is struck | points | different | SIGKILL | full disk |\n|---|---|---:|---:|---:|---:|"
        old = f"{table.BEGIN}\n\n{head}\n| a | first | 10 | 8 | 8 of 8 | 7 of 7 |\n\n{table.END}"
        assert table.parsed(old) == [table.Row("a", "first", 10, 8, {"kill": "8 of 8", "full": "7 of 7"})]

    def test_keeps_what_was_not_run(self):
        old = [table.Row("a", "first", 10, 8, {"kill": "8 of 8", "full": "1 of 1"}), table.Row("gone", "x", 1, 1, {})]
        new = [table.Row("a", "first", 11, 9, {"kill": "9 of 9"}), table.Row("b", "second", 3, 3, {"kill": "3 of 3"})]
        kept = table.merged(old, new, ["b", "a"])
        assert [row.name for row in kept] == ["b", "a"]
        assert kept[1] == table.Row("a", "first", 11, 9, {"kill": "9 of 9", "full": "1 of 1"})

    def test_without_its_marks_is_refused(self):
        with pytest.raises(ValueError, match="lost the marks"):
            table.parsed("no table")
