"""Cycles as runs: what they may change, how they end, what a merge gets, what a death in the middle leaves."""

from __future__ import annotations

import hashlib
import json
import signal
from typing import TYPE_CHECKING

import pytest

from agents import commons, cycles, cycling, plan, policy, settle, workshop
from agents.config import resolve
from agents.context import prepare
from agents.engines import registry
from agents.errors import OperatorError
from agents.model import Phase, Status
from agents.plan import Ask
from agents.sweep import sweep
from essentials import records
from tests.support.boxes import scene
from tests.support.lives import SESSION, Small, outcome
from tests.support.world import OPEN_AGENT, boxes, context_of, eventually, git, ledger_of, meta_of, runs_now, state_of

if TYPE_CHECKING:
    from pathlib import Path

BRANCH = "agent-box/commons"
TRUST = {"AGENT_BOX_TRUST_UNSANDBOXED": "1"}
STEP = 'n = count("n"); write(own / f"{n}.md", str(n)); fact("goal.progressed", goal_id="goal-1"); end("goal-1")'
DONE = 'write(own / "last.md", "done"); fact("goal.completed", goal_id="goal-1"); end("goal-1", "completed")'
HANG = 'write(own / "half.md", "half"); fact("goal.created", goal_id="goal-1"); time.sleep(300)'


@pytest.fixture
def small(tmp_path):
    return Small(tmp_path / "small")


@pytest.fixture
def run(small, agent):
    return small.runner(agent)


def on_commons(repo: Path) -> list[str]:
    """What the branch holds in the agents' folders."""
    return git(repo, "ls-tree", "-r", "--name-only", BRANCH, "--", *commons.OWN).splitlines()


def commits(repo: Path) -> int:
    return int(git(repo, "rev-list", "--count", f"main..{BRANCH}"))


def airlocks(repo: Path) -> int:
    return git(repo, "worktree", "list").count("agent_box/trees")


def prefix(repo: Path) -> str:
    """What approves the latest run's patch."""
    return hashlib.sha256((repo / ".agents" / "latest" / "changes.patch").read_bytes()).hexdigest()[:8]


def test_a_cycle_is_a_run_whose_work_is_on_the_commons_and_nowhere_else(run, small, repo):
    before = git(repo, "rev-parse", "main"), git(repo, "ls-files", "--stage")
    small.does(STEP)
    told = outcome(run("cycle", "cedar", "--json"))
    assert (told["status"], told["type"], told["agent"], told["cycle"]) == (
        "DONE", "cycle", "cedar", {"goal": "goal-1", "outcome": "progressed"},
    )  # fmt: skip
    assert on_commons(repo) == ["workspace/cedar/1.md"]
    assert (git(repo, "rev-parse", "main"), git(repo, "ls-files", "--stage")) == before
    assert git(repo, "status", "--porcelain") == ""
    # It is one of thousands: what weighs most is gone as soon as the branch holds it.
    assert airlocks(repo) == 0
    assert not (repo / ".agents" / "latest" / "private" / "room.git").exists()
    assert state_of(repo)["worktree_path"] is None
    assert [entry["event"] for entry in ledger_of(repo)] == ["run.started", "goal.progressed", "run.finished"]
    assert run("verify").returncode == 0


def test_the_cycle_in_which_a_goal_is_complete_waits_for_the_gate_with_all_of_it(run, small, repo):
    small.does(STEP)
    run("cycle", "cedar")
    assert run("cycle", "cedar").returncode == 0
    (repo / "shop" / "db.py").write_text("# moved on\n")
    git(repo, "commit", "-qam", "meanwhile")
    small.does(DONE)
    told = outcome(run("cycle", "cedar", "--json"))
    assert (told["status"], told["patch"]["files"]) == ("REVIEW", 3)
    assert told["repo_sha_start"] == git(repo, "rev-parse", "main").strip()
    assert airlocks(repo) == 0
    refused = run("resume", told["id"])
    assert (refused.returncode, "./agent cycle cedar" in refused.stderr) == (2, True)
    merged = run("merge", told["id"], "--approve", prefix(repo), env=TRUST)
    assert merged.returncode == 0, merged.stderr
    assert sorted(path.name for path in (repo / "workspace" / "cedar").iterdir()) == ["1.md", "2.md", "last.md"]
    assert state_of(repo)["status"] == "MERGED"
    # What was merged is no conflict for those who go on.
    small.does(STEP)
    assert outcome(run("cycle", "vault", "--json"))["status"] == "DONE"
    assert len(on_commons(repo)) == 4


@pytest.mark.slow
def test_a_complete_goal_without_files_is_done(run, small, repo):
    small.does('fact("goal.completed", goal_id="goal-1"); end("goal-1", "completed")')
    assert outcome(run("cycle", "cedar", "--json"))["status"] == "DONE"
    assert commits(repo) == 0


@pytest.mark.parametrize("path", ["README.md", "workspace/vault/a.md"])
def test_whatever_is_not_its_own_is_a_breach(run, small, repo, path):
    small.does(f'write({path!r}, "x"); write(own / "a.md", "a"); end("goal-1")')
    done = run("cycle", "cedar", "--json")
    told = outcome(done)
    assert (done.returncode, told["status"], told["failure"]["kind"]) == (3, "CRASHED", "airlock_breach")
    assert path in told["failure"]["message"]
    assert commits(repo) == 0
    assert f"b/{path}" in (repo / ".agents" / "latest" / "changes.patch").read_text()


def test_a_cycle_that_failed_is_not_on_the_commons_and_can_be_gone_on_with(run, small, repo):
    small.does('write(own / "a.md", "a"); fact("goal.created", goal_id="goal-1"); sys.exit(3)')
    assert outcome(run("cycle", "cedar", "--json"))["status"] == "CRASHED"
    assert (commits(repo), airlocks(repo)) == (0, 1)
    small.does('assert (own / "a.md").read_text() == "a"; write(own / "b.md", "b"); end("goal-1")')
    assert outcome(run("resume", "latest", "--json"))["status"] == "DONE"
    assert on_commons(repo) == ["workspace/cedar/a.md", "workspace/cedar/b.md"]
    assert (commits(repo), airlocks(repo)) == (1, 0)


@pytest.mark.slow
def test_the_next_cycle_puts_away_what_a_failed_one_left_and_its_patch_keeps_it(run, small, repo):
    small.does('write(own / "a.md", "a"); sys.exit(3)')
    failed = outcome(run("cycle", "cedar", "--json"))["id"]
    small.does('assert not own.exists(); write(own / "b.md", "b"); end("goal-2")')
    assert outcome(run("cycle", "cedar", "--json"))["status"] == "DONE"
    assert (on_commons(repo), airlocks(repo)) == (["workspace/cedar/b.md"], 0)
    # Two goals must not be mixed in one patch: what the first had left is kept, and not gone on with.
    refused = run("resume", failed)
    assert (refused.returncode, "has lived on since" in refused.stderr) == (2, True)
    [box] = (repo / ".agents" / "runs").glob(f"*__{failed}")
    assert "+a" in (box / "changes.patch").read_text()


@pytest.mark.slow
def test_a_cycle_whose_mind_was_away_is_no_failure(run, small):
    small.does('end(None, "waiting", turns=0)')
    told = outcome(run("cycle", "cedar", "--json"))
    assert (told["status"], told["cycle"]["outcome"]) == ("DONE", "waiting")


@pytest.mark.slow
def test_a_flood_of_chatter_does_not_hide_how_it_ended_nor_fill_the_ledger(run, small, repo):
    small.does("""
        for n in range(300): fact("mind.waiting", n=n); fact("goal.progressed", goal_id="goal-1", n=n)
        write(own / "a.md", "a"); fact("goal.completed", goal_id="goal-1"); end("goal-1", "completed")
    """)
    assert outcome(run("cycle", "cedar", "--json"))["status"] == "REVIEW"
    copied = [entry["event"] for entry in ledger_of(repo) if not entry["event"].startswith("run.")]
    assert (len(copied), copied[-1]) == (64, "goal.completed")


@pytest.mark.slow
def test_two_cycles_of_one_agent_at_a_time_are_refused(run, small, repo):
    small.does(HANG)
    with small.background(repo, "cycle", "cedar", AGENT_BOX_GRACE="1s") as first:
        eventually(runs_now(repo))
        refused = run("cycle", "cedar")
        assert (refused.returncode, "in the middle of a cycle" in refused.stderr) == (2, True)
        small.does(STEP)
        assert run("cycle", "vault").returncode == 0
        first.send_signal(signal.SIGTERM)
        assert first.wait(30) == 2


@pytest.mark.slow
def test_a_cycle_can_be_looked_at_before_it_is_one(run, small, repo):
    small.does(STEP)
    done = run("cycle", "vault", "--dry-run", "--json")
    told = outcome(done)["meta"]
    assert (told["run_type"], told["agent"], told["engine"]) == ("cycle", "vault", "small")
    assert boxes(repo) == []
    assert BRANCH not in git(repo, "branch", "--list", "--all")


def test_an_engine_without_a_life_of_its_own_is_not_asked_for_one(agent):
    done = agent("cycle", "cedar", "--dry-run", "--json", "--mind", "reflex", env={"AGENT_BOX_ENGINE": "claude"})
    told = outcome(done)
    assert told["meta"]["engine"] == "hollow"
    words = dict(zip(told["argv"], told["argv"][1:], strict=False))
    assert (words["--run-type"], words["--agent"], words["--run"]) == ("cycle", "cedar", told["meta"]["run_name"])
    assert words["--state"].endswith("/.agents/hollow")
    assert "--substrate" not in words


def test_nobody_else_lives(agent, repo):
    for words in (["cycle", "root"], ["live", "--agents", "cedar,root", "--cycles", "1"]):
        done = agent(*words)
        assert (done.returncode, "cedar, cipher, vault" in done.stderr) == (2, True)
    assert boxes(repo) == []


# --- Settings of the environment --------------------------------------------------------------------------------------


def test_a_lock_on_the_way_out_is_refused_before_anything_starts(agent, repo):
    """T59: a configuration that locks what leads an agent out of its suffering starts nothing."""
    (repo / "agent.yaml").write_text("locks: {shell_exec: 0.5}\n")
    for verb in (["cycle", "cedar"], ["live", "--cycles", "1"]):
        done = agent(*verb)
        assert done.returncode == 2
        assert "agent.yaml line 1: `locks`: shell_exec must stay open" in done.stderr
    assert boxes(repo) == []


def test_settings_of_the_environment_reach_the_agent_and_the_usual_ones_are_not_said(agent, repo):
    (repo / "agent.yaml").write_text(
        "locks: {fs_write: 0.6}\nstrict_tools: yes\nresearch: [docs/]\nstep_seconds: 30s\nmax_steps: 6\n"
    )
    told = outcome(agent("cycle", "cedar", "--dry-run", "--json", "--mind", "reflex"))
    given = json.loads(told["argv"][told["argv"].index("--substrate") + 1])
    assert given == {"locks": {"fs_write": 0.6}, "strict_tools": True, "research": ["docs"], "step_seconds": 30.0}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((f"locks: [fs_write=0.7, {name}=0.5]\n", f"{name} must stay open") for name in sorted(policy.PATH_OUT)),
        ("locks: {fs_write: 1.5}\n", "above 0 up to 1"),
        ("locks: {fs_write: high}\n", "above 0 up to 1"),
        ("custom_stressors: grow\n", "escalate"),
        ("research: [https://example.org/]\n", "only name folders"),
        ("research: [../elsewhere]\n", "inside the repository"),
    ],
)
def test_a_setting_that_does_not_fit_is_said_with_its_line(text, why):
    with pytest.raises(OperatorError, match="line 1") as refused:
        resolve({}, {}, text)
    assert why in refused.value.message + refused.value.hint


def test_supervisor_and_agent_know_the_same_ways_out_locks_and_names():
    from hollow.substrate import model, settings

    assert settings.PATH_OUT == policy.PATH_OUT
    assert dict(settings.LOCKS) == dict(policy.LOCKS)
    assert model.AGENTS == policy.AGENTS


# --- Deaths in the middle ---------------------------------------------------------------------------------------------


def test_a_cycle_whose_supervisor_was_killed_is_crashed_kept_and_put_away_by_the_next(run, small, repo):
    small.does(HANG)
    with small.background(repo, "cycle", "cedar"):
        eventually(runs_now(repo))
        eventually(lambda: list(repo.glob("agent_box/trees/*/workspace/cedar/half.md")))
    run("status")
    assert (state_of(repo)["status"], state_of(repo)["failure"]["kind"]) == ("CRASHED", "supervisor_died")
    assert (commits(repo), airlocks(repo)) == (0, 1)
    small.does(STEP)
    assert outcome(run("cycle", "cedar", "--json"))["status"] == "DONE"
    assert (on_commons(repo), airlocks(repo)) == (["workspace/cedar/1.md"], 0)


def stream(*facts: tuple[str, dict]) -> bytes:
    """What a cycle that ended well has said."""
    events = [{"type": "system", "subtype": "hollow", "kind": kind, **told} for kind, told in facts]
    end = {"type": "result", "subtype": "success", "is_error": False, "result": "# Done", "num_turns": 2}
    return b"".join(json.dumps({"session_id": SESSION, **each}).encode() + b"\n" for each in [*events, end])


def finalizing(context, *, completed: bool) -> tuple[plan.RunPlan, str]:
    """A cycle whose supervisor died after its agent had ended well; returns its plan and the tree of its airlock."""
    ask = Ask(run_type="cycle", task="one cycle of cedar", agent="cedar", start=commons.begin(context))
    made = plan.plan_run(
        ask, scene(context, "a1b2".ljust(32, "0"), "reflex"), context.config, registry.engine("hollow"), "a1b2"
    )
    assert context.store.reserve("a1b2", made.meta.run_name)
    owner = context.store.claim(made.meta, made.state, {})
    context.journal.append("run.started", made.meta.run_name, plan.facts(made.meta, made.state))
    bench = workshop.ready(context, made, lambda: False)
    (bench.airlock.path / "design").mkdir()
    (bench.airlock.path / "design" / "a.md").write_text("a\n")
    said = [("goal.completed", {"goal_id": "goal-1"})] if completed else []
    box = context.store.box(made.meta.run_name)
    box.stream.write_bytes(stream(*said, ("cycle.ended", {"goal_id": "goal-1", "outcome": "completed"})))
    context.store.update(
        box.name, lambda now: records.replace(now, phase=Phase.FINALIZING, exit_code=0, worktree_path="there")
    )
    owner.release()
    return made, (workshop.export(context, made.meta, bench, goal="goal-1") or {})["airlock"]


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("completed", [False, True])
def test_a_cycle_cut_off_at_its_very_end_is_taken_in_once(repo, committed, completed):
    context = context_of(repo)
    prepare(context)
    made, tree = finalizing(context, completed=completed)
    if committed:
        # The kill came between the commit and the settling.
        commons.accept(context, workshop.airlock.existing(
            context.repo, context.layout, context.store.box(made.meta.run_name), made.meta.airlock_base
        ).room, made.meta, tree, "goal-1")  # fmt: skip
    assert sweep(context) == [made.meta.run_name]
    state = context.store.load(made.meta.run_name)
    assert state.status is (Status.REVIEW if completed else Status.DONE)
    assert (on_commons(repo), commits(repo), airlocks(repo)) == (["design/a.md"], 1, 0)
    assert (
        git(repo, "log", "-1", f"--format=%(trailers:key={cycles.RUN},valueonly)", BRANCH).strip() == made.meta.run_name
    )
    assert sweep(context) == []


@pytest.mark.parametrize("committed", [False, True])
def test_a_cycle_that_a_restart_cut_off_has_ended_well_only_where_the_commons_hold_it(repo, committed):
    """C31: the branch moves when the files that it speaks of are on the disk; until then some may be lost."""
    context = context_of(repo)
    prepare(context)
    made, tree = finalizing(context, completed=False)
    name = made.meta.run_name
    if committed:
        commons.accept(context, workshop.airlock.existing(
            context.repo, context.layout, context.store.box(name), made.meta.airlock_base
        ).room, made.meta, tree, "goal-1")  # fmt: skip
    context.store.update(name, lambda now: records.replace(now, boot_id="before"))
    assert sweep(context) == [name]
    assert context.store.load(name).status is (Status.DONE if committed else Status.CRASHED)
    assert (commits(repo), airlocks(repo)) == ((1, 0) if committed else (0, 1))


@pytest.mark.slow
def test_the_envelope_of_a_cycle_says_where_it_began(run, small, repo):
    small.does(STEP)
    run("cycle", "cedar")
    first = meta_of(repo)
    assert first["start"] == first["repo_sha_start"]
    run("cycle", "cedar")
    assert meta_of(repo)["start"] == git(repo, "rev-parse", f"{BRANCH}~1").strip()


def test_a_full_wall_lets_a_cycle_see_its_memory_and_write_its_airlock(small, agent, walled, repo):
    """The agent's process sees `.agents/hollow` and what is given to it of its own box, and nothing else there."""
    small.does("""
        seen = sorted(os.listdir(memory.parent))
        assert seen == ["hollow", "runs"], seen
        assert sorted(os.listdir(memory.parent / "runs" / os.environ["AGENT_BOX_RUN"])) == ["outbox", "private"]
        write(own / f"{count('n')}.md", "1"); end("goal-1")
    """)
    done = agent("cycle", "cedar", "--json", launch=OPEN_AGENT, env=small.env)
    told = outcome(done)
    assert (told["status"], told["isolation"]) == ("DONE", "full"), told["failure"]
    assert (repo / ".agents" / "hollow" / "n").read_text() == "1"


@pytest.mark.parametrize("marked", [True, False], ids=["next command", "next cycle"])
@pytest.mark.parametrize("half", [True, False], ids=["registration alone", "all of it"])
def test_a_cycle_killed_while_its_airlock_was_put_away_leaves_nothing(repo, half, marked):
    """Its marker goes last, and its registration vouches for an airlock that is gone: the next sweep takes both."""
    context = context_of(repo)
    prepare(context)
    made, tree = finalizing(context, completed=False)
    told = {"sha256": "", "tree": tree, "base": made.meta.repo_sha_start, "files": 1, "airlock": tree}
    state = context.store.update(
        made.meta.run_name,
        lambda now: records.replace(now, status=Status.DONE, phase=Phase.SETTLED, patch=told),
    )
    settle.record(context.store, context.journal, made.meta, state)
    if half:
        context.layout.tree(made.meta.run_name).rename(context.layout.staging / "gone-1")
    if not marked:
        context.store.deactivate(made.meta.short_id)
    assert (sweep(context), airlocks(repo)) == ([], 0 if marked else 1)
    cycling.begin(context, Ask(run_type="cycle", task="one cycle of cedar", agent="cedar"))
    assert (airlocks(repo), context.store.active()) == (0, {})
    assert not context.store.box(made.meta.run_name).room.exists()


def test_an_airlock_that_was_not_put_away_any_more_goes_with_the_next_cycle(repo):
    """A supervisor that is killed after it has settled a cycle leaves nothing but the airlock behind."""
    context = context_of(repo)
    prepare(context)
    made, tree = finalizing(context, completed=False)
    told = {"sha256": "", "tree": tree, "base": made.meta.repo_sha_start, "files": 1, "airlock": tree}
    context.store.update(
        made.meta.run_name,
        lambda now: records.replace(now, status=Status.DONE, phase=Phase.SETTLED, patch=told),
    )
    assert airlocks(repo) == 1
    ask = Ask(run_type="cycle", task="one cycle of vault", agent="vault")
    cycling.begin(context, ask)
    assert airlocks(repo) == 1
    assert cycling.begin(context, records.replace(ask, agent="cedar")).start == git(repo, "rev-parse", BRANCH).strip()
    assert airlocks(repo) == 0
