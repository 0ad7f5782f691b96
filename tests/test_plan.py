"""A whole run decided before anything is touched: what it will be, when it cannot be, and the same again on resume."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import commands, naming, plan, policy
from agents.config import Config
from agents.engines import registry
from agents.engines.base import BASE_ENV, Command, Program
from agents.engines.stream_json import STREAM_JSON
from agents.errors import AgentError, HostError, OperatorError, Tampered
from agents.layout import Layout
from agents.model import Failure, FailureKind, Phase, RunMeta, RunState, Status
from agents.plan import Ask
from essentials import records
from tests.support.plans import NOW, TOKEN, planned, running, scene

if TYPE_CHECKING:
    from agents.engines.base import Brief

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
HOLLOW = registry.engine("hollow")


class Recorder:
    """An engine that keeps what it is told."""

    name, output, confined, dialect, tools = "recorder", "pipe", False, STREAM_JSON, MappingProxyType({})
    program, version_argv, help_argv, session_files, lives = "recorder", (), (), "", True

    def __init__(self) -> None:
        self.briefs: list[Brief] = []

    def command(self, brief: Brief) -> Command:
        self.briefs.append(brief)
        return Command(argv=("recorder", brief.session_id), pass_env=BASE_ENV, stdin=brief.meta.task.encode())

    @property
    def told(self) -> Brief:
        """What it was told last."""
        return self.briefs[-1]


def session_of(made: plan.RunPlan) -> str:
    """The session that the agent of *made* is told."""
    argv = made.command.argv
    return argv[argv.index("--session-id") + 1]


# --- a new run --------------------------------------------------------------------------------------------------------


def test_the_name_of_a_run_has_its_form() -> None:
    """T117: fix "Optimize auth middleware!" at a fixed time."""
    meta = planned("fix", "Optimize auth middleware!", short_id="a1b2").meta
    assert meta.run_name == "26-03-01_0915__optimize-auth-middleware__a1b2"
    assert re.fullmatch(r"\d\d-\d\d-\d\d_\d{4}__[a-z0-9-]+__[0-9a-f]{4,}", meta.run_name)
    assert (meta.slug, meta.short_id) == ("optimize-auth-middleware", "a1b2")


minutes = st.integers(946_684_800 // 60, 4_102_444_800 // 60 - 1)


@settings(max_examples=60, deadline=None)
@given(minutes, minutes, st.sampled_from(["zzz", "aaa", "!"]))
def test_names_sort_as_their_starts_do(one: int, other: int, task: str) -> None:
    """T118: to the minute."""
    first, second = (planned(task=task, now=float(minute * 60)).meta.run_name for minute in (one, other))
    assert (first < second) == (one < other)


def test_the_same_world_leads_to_the_same_plan() -> None:
    """T119: what differs between two starts is the token and the id alone."""
    assert planned() == planned()
    assert planned() != planned(short_id="c0de")
    assert session_of(planned()) != session_of(planned(token="f" * 64))


def test_the_dry_plan_is_the_run_but_for_its_id() -> None:
    """T119: a start that finds its id taken tries the next one, and nothing else about it changes."""
    dry, real = planned(short_id="0be1"), planned(short_id="c0de")

    def neutral(made: plan.RunPlan) -> str:
        text = json.dumps(plan.describe(made, ["PATH"])) + made.state.to_json().decode()
        holes = {
            session_of(made): "SESSION",
            made.meta.config_hash: "SEAL",
            made.meta.commands_digest: "DIGEST",
            made.meta.short_id: "ID",
        }
        for hole, name in holes.items():
            text = text.replace(hole, name)
        return text

    assert neutral(dry) == neutral(real)


def test_meta_says_all_about_request_and_envelope() -> None:
    """T122: every field has the value that the request and the tier lead to."""
    made = planned("review", "is it safe?", model="m", dirty=True)
    assert made.meta.to_dict() == {
        "run_name": "26-03-01_0915__is-it-safe__0be1", "type": "review", "run_type": "review", "short_id": "0be1", "task": "is it safe?",
        "slug": "is-it-safe", "repo_sha_start": "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "dirty": True, "engine": "hollow", "model": "m",
        "engine_version": "0.1.0", "agent": "cipher", "mind": "reflex", "tools_allowlist": ["Grep", "Ls", "ReadFile", "cat", "GitDiff"],
        "safe_commands": ["scout_0be1", "plan_0be1", "summarize_0be1"], "human_only_commands": ["merge_0be1", "apply_0be1"],
        "config_hash": policy.config_hash(
            ["Grep", "Ls", "ReadFile", "cat", "GitDiff"], ["scout_0be1", "plan_0be1", "summarize_0be1"], ["merge_0be1", "apply_0be1"]
        ),
        "commands_digest": commands.digest(made.commands), "isolation": "none", "argv": [], "team": None, "created_at": "2026-03-01T09:15:00.000Z",
        "schema": 1,
    }  # fmt: skip


def test_before_the_start_the_state_is_empty_but_for_who_and_when() -> None:
    """T124: ACTIVE, and pid, session, heartbeat and failure null."""
    state = json.loads(planned().state.to_json())
    seeds_own = (
        "status",
        "pid",
        "session_id",
        "worktree_path",
        "started_at",
        "last_heartbeat",
        "config_hash",
        "failure",
    )
    assert {key: state[key] for key in seeds_own} == {
        "status": "ACTIVE", "pid": None, "session_id": None, "worktree_path": None, "started_at": "2026-03-01T09:15:00.000Z",
        "last_heartbeat": None, "config_hash": planned().meta.config_hash, "failure": None,
    }  # fmt: skip
    assert (state["merge"], state["workers"]) == (None, [])
    assert (state["phase"], state["boot_id"], state["host_id"], state["supervisor_pid"]) == (
        "created",
        "boot-1",
        "host-1",
        4242,
    )
    assert state["clock_offset"] == NOW - 5000


@pytest.mark.parametrize("run_type", ["scout", "plan", "review", "benchmark"])
def test_a_run_that_only_reads_has_no_worktree(run_type: str) -> None:
    """T125: the agent works where the operator stands, and writes nothing there."""
    made = planned(run_type)
    assert made.state.worktree_path is None
    assert made.state.session_cwd == "/w/shop"
    argv = made.command.argv
    assert argv[argv.index("--repo") + 1] == "/w/shop"


@pytest.mark.parametrize("run_type", ["scout", "plan", "review", "benchmark"])
def test_a_run_that_only_reads_is_told_so(run_type: str) -> None:
    """T125: its root is the checkout, and no engine may take it for one that edits."""
    engine = Recorder()
    made = planned(run_type, mind=None, engine=engine)
    assert (made.mutates, made.worktree, made.root) == (False, None, Path("/w/shop"))
    assert (engine.told.mutates, engine.told.root, engine.told.checkout) == (False, Path("/w/shop"), Path("/w/shop"))
    assert "READ-ONLY" in made.prompt


def test_a_run_that_edits_works_in_an_airlock_of_its_own() -> None:
    """T125: the state names it as in the seed's example, and the agent is started in it."""
    made = planned("fix", "Optimize auth middleware!", short_id="a1b2")
    name = "26-03-01_0915__optimize-auth-middleware__a1b2"
    tree = Path("/w/shop/agent_box/trees") / name
    assert (made.root, made.mutates, made.worktree) == (tree, True, f"agent_box/trees/{name}")
    assert (made.state.worktree_path, made.state.session_cwd) == (f"agent_box/trees/{name}", str(tree))
    argv = made.command.argv
    assert argv[argv.index("--repo") + 1] == str(tree)
    assert "/w/shop" not in argv
    assert plan.describe(made, [])["works_in"] == str(tree)
    assert "worktree of your own" in made.prompt
    assert "READ-ONLY" not in made.prompt


def test_an_engine_is_told_all_about_the_run_that_edits() -> None:
    """T125, T131: every path, and what the run may use."""
    engine = Recorder()
    config = Config(max_turns=3, max_usd=0.5, max_tokens=1000)
    made = planned("fix", mind=None, engine=engine, config=config, isolation="full")
    box = Path("/w/shop/.agents/runs") / made.meta.run_name
    told = engine.told
    assert (told.meta, told.prompt, told.commands) == (made.meta, made.prompt, made.commands)
    assert (told.root, told.checkout, told.mutates) == (made.root, Path("/w/shop"), True)
    assert (told.private, told.home_dir, told.run_dir) == (box / "private", box / "private/home", box / "outbox")
    assert records.asdict(told.budget) == {"max_turns": 3, "max_usd": 0.5, "max_tokens": 1000}
    assert (told.isolation, told.resume, told.message) == ("full", False, "")
    assert UUID.fullmatch(told.session_id)


@pytest.mark.parametrize(("network", "reached"), [("auto", True), ("on", True), ("off", False)])
def test_an_engine_knows_whether_there_is_a_network(network: Any, reached: bool) -> None:
    engine = Recorder()
    planned(mind=None, engine=engine, config=Config(network=network))
    assert engine.told.network is reached


def test_the_program_that_was_found_is_the_one_that_is_handed_on() -> None:
    """What the settings were read from is what gets started: there is no second look at the PATH."""
    program = Program(path="/opt/bin/recorder", version="1.2", help_text="--new")
    engine = Recorder()
    made = planned(mind=None, engine=engine, program=program)
    assert (made.program, engine.told.program) == (program, program)


def test_a_run_of_several_agents_is_named_by_its_parts() -> None:
    whole = "26-03-01_0915__tidy__c0de"
    made = plan.plan_run(Ask(run_type="fix", task="tidy", team=whole), scene(), Config(), HOLLOW, "0be1")
    assert made.meta.team == whole
    assert plan.facts(made.meta, made.state)["team"] == whole
    assert "team" not in plan.facts(planned("fix").meta, made.state)
    alone = plan.plan_run(Ask(run_type="fix", task="tidy"), scene(), Config(), HOLLOW, "0be1")
    # The seal is of what an agent may do, and that is the same for all.
    assert alone.meta.config_hash == made.meta.config_hash
    assert records.replace(made.meta, team=None) == alone.meta


@pytest.mark.parametrize(
    ("run_type", "agent"),
    [("scout", "cedar"), ("plan", "cipher"), ("review", "cipher"), ("benchmark", "cipher"), ("fix", "vault")],
)
def test_the_role_fits_the_type_and_only_hollow_has_roles(run_type: str, agent: str) -> None:
    """T131: the tier's tools, too, and nothing beyond them."""
    made = planned(run_type)
    assert (made.meta.agent, made.meta.tools_allowlist) == (agent, policy.tier(run_type).tools)
    other = planned(run_type, mind=None, engine=registry.engine("command"), argv=("true",))
    assert (other.meta.agent, other.meta.mind) == (None, None)


def test_the_prompt_says_the_four_things() -> None:
    """T132: RUN_DIR, each safe command, the forbidden ones, where artifacts go."""
    made = planned()
    run_dir = "/w/shop/.agents/runs/26-03-01_0915__why-is-the-start-slow__0be1/outbox"
    assert f"RUN_DIR: {run_dir}" in made.prompt
    assert all(f"/{name}" in made.prompt for name in (*made.meta.safe_commands, *made.meta.human_only_commands))
    assert made.prompt.index("FORBIDDEN") < made.prompt.index("/merge_0be1")
    assert "RUN_DIR and nowhere else" in made.prompt
    assert made.prompt in made.command.argv


def test_the_limits_are_the_settings() -> None:
    """T141, C17: each field has the setting's value, and there is no other field."""
    given = {
        "stall_after": 7, "linger": 8, "grace": 9, "timeout": 10, "max_output": 11, "on_stall": "mark", "max_turns": 12,
        "max_usd": 1.5, "max_tokens": 13, "min_free": 14, "loop_after": 15,
    }  # fmt: skip
    limits = records.asdict(planned(config=Config(**given)).limits)
    assert limits == given


def test_without_settings_no_budget_is_set_but_disk_and_loops_are_watched() -> None:
    limits = planned().limits
    assert (limits.max_turns, limits.max_usd, limits.max_tokens) == (None, None, None)
    assert (limits.min_free, limits.loop_after) == (64 * 1024**2, 12)
    assert "--max-turns" not in planned().command.argv


# --- what cannot be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["", " ", "\n\t \r\n", "\0", "\0 \0", "\u3000"])
def test_an_empty_task_is_refused(task: str) -> None:
    with pytest.raises(OperatorError, match="empty"):
        planned(task=task)


@pytest.mark.parametrize(
    ("task", "kept"),
    [
        ("find it", "find it"),
        ("a\0b", "ab"),
        ("caf\udcc3\udca9", "café"),
        ("caf\udce9", "caf\ufffd"),
        ("half \ud800 pair", "half ? pair"),
        ("x" * plan.TASK_LIMIT, "x" * plan.TASK_LIMIT),
    ],
    ids=["plain", "NUL", "undecoded UTF-8", "undecodable", "half a pair", "1 MiB"],
)
def test_a_task_is_kept_as_text_that_every_file_can_hold(task: str, kept: str) -> None:
    made = planned(task=task)
    assert made.meta.task == kept
    assert made.command.stdin == kept.encode()
    assert len(made.meta.run_name) < 100
    assert max(map(len, made.command.argv)) < 100_000


@pytest.mark.parametrize("task", ["x" * (plan.TASK_LIMIT + 1), "é" * (plan.TASK_LIMIT // 2 + 1)])
def test_a_task_above_a_mebibyte_is_refused(task: str) -> None:
    with pytest.raises(OperatorError, match="1 MiB"):
        planned(task=task)


@pytest.mark.parametrize("run_type", ["foo", "", "ops"])
def test_an_unknown_type_is_refused_before_anything_is_planned(run_type: str) -> None:
    """T148: a usage error."""
    with pytest.raises(OperatorError, match="no run type"):
        planned(run_type)


LEVELS = ("none", "partial", "full")


@pytest.mark.parametrize("there", LEVELS)
@pytest.mark.parametrize("floor", ["auto", *LEVELS])
def test_a_floor_above_what_the_machine_offers_is_the_hosts_failure(floor: Any, there: str) -> None:
    """T147: no run below the floor of isolation, new or resumed."""
    config = Config(sandbox=floor)
    old = planned()
    if floor in LEVELS and LEVELS.index(floor) > LEVELS.index(there):
        with pytest.raises(HostError, match="isolation"):
            planned(config=config, isolation=there)
        with pytest.raises(HostError, match="isolation"):
            again(old, config=config, isolation=there)
    else:
        assert planned(config=config, isolation=there).meta.isolation == there
        assert again(old, config=config, isolation=there)


def test_a_clock_of_another_century_is_the_hosts_failure() -> None:
    with pytest.raises(HostError, match="year"):
        planned(now=datetime(2150, 1, 1, tzinfo=UTC).timestamp())


# --- again ------------------------------------------------------------------------------------------------------------


def crashed(made: plan.RunPlan, **changes: Any) -> RunState:
    """The state that *made* ended with."""
    usual = {"status": Status.CRASHED, "phase": Phase.SETTLED, "session_id": "0a0a0a0a-1111-4222-8333-444444444444"}
    return records.replace(made.state, **{**usual, **changes})


def again(
    made: plan.RunPlan,
    message: str = "",
    *,
    meta: RunMeta | None = None,
    state: RunState | None = None,
    config: Config | None = None,
    engine: Any = HOLLOW,
    fresh: bool = False,
    **changes: Any,
) -> plan.RunPlan:
    """The plan with which *made* goes on."""
    there = scene(**{"token": "9" * 64, "now": NOW + 9000, **changes})
    ended = state or crashed(made)
    return plan.plan_resume(meta or made.meta, ended, message, there, config or Config(), engine, fresh=fresh)


@pytest.mark.parametrize("run_type", sorted(policy.TIERS))
def test_a_resumed_run_has_the_same_envelope_session_and_commands(run_type: str) -> None:
    """T143: the same command set, the same allowlist, the same session."""
    made = planned(run_type)
    resumed = again(made)
    assert resumed.meta == made.meta
    assert resumed.commands == made.commands
    assert commands.digest(resumed.commands) == made.meta.commands_digest
    assert resumed.prompt == made.prompt
    assert session_of(resumed) == "0a0a0a0a-1111-4222-8333-444444444444"
    assert resumed.state == crashed(made)
    assert (resumed.root, resumed.mutates, resumed.worktree) == (made.root, made.mutates, made.worktree)


@pytest.mark.parametrize("run_type", sorted(policy.TIERS))
def test_the_engine_is_told_that_it_goes_on_and_with_what(run_type: str) -> None:
    """T143, T145: the session is one to go on with, unless there is none or a fresh one was asked for."""
    engine = Recorder()
    made = planned(run_type, mind=None, engine=engine)
    assert (engine.told.resume, engine.told.message) == (False, "")
    again(made, "and the tests?", engine=engine)
    assert (engine.told.resume, engine.told.message) == (True, "and the tests?")
    assert engine.told.session_id == "0a0a0a0a-1111-4222-8333-444444444444"
    again(made, engine=engine, state=crashed(made, session_id=None))
    assert (engine.told.resume, engine.told.session_id) != (True, None)
    assert engine.told.resume is False


def test_a_fresh_session_in_the_same_airlock() -> None:
    """T143: all of the envelope stays, only what the agent remembers does not."""
    engine = Recorder()
    made = planned("fix", mind=None, engine=engine)
    usual, fresh = again(made, engine=engine), again(made, engine=engine, fresh=True)
    old, new = (resumed.command.argv[1] for resumed in (usual, fresh))
    assert old == "0a0a0a0a-1111-4222-8333-444444444444"
    assert UUID.fullmatch(new)
    assert new not in {old, engine.briefs[0].session_id}
    assert engine.told.resume is False
    assert (fresh.root, fresh.worktree, fresh.meta, fresh.commands) == (
        usual.root,
        usual.worktree,
        made.meta,
        made.commands,
    )
    assert (fresh.state, fresh.prompt) == (usual.state, usual.prompt)


def test_a_fresh_session_asks_nothing_of_the_old_ones_name() -> None:
    """T145: P22: whoever is stuck with a name that cannot be handed on begins anew."""
    made = planned()
    state = crashed(made, session_id="--flag")
    with pytest.raises(AgentError, match="session"):
        again(made, state=state)
    assert UUID.fullmatch(session_of(again(made, state=state, fresh=True)))


@pytest.mark.parametrize("fresh", [False, True])
def test_only_a_fix_of_hollow_that_goes_on_is_told_to_resume(fresh: bool) -> None:
    """T143: what it had said is in its airlock and its stream; a scout begins anew."""
    for run_type in policy.TIERS:
        resumed = again(planned(run_type), fresh=fresh)
        assert ("--resume" in resumed.command.argv) == (run_type == "fix" and not fresh)
        assert "--resume" not in planned(run_type).command.argv


def test_a_run_that_died_before_its_first_word_gets_a_session() -> None:
    """T145: there is nothing to go back to, so it begins anew under the same envelope."""
    resumed = again(planned(), state=crashed(planned(), session_id=None))
    assert UUID.fullmatch(session_of(resumed))


def test_what_the_operator_adds_follows_the_task() -> None:
    resumed = again(planned(), "look at db.py first")
    assert resumed.command.stdin == b"why is the start slow?\n\nlook at db.py first"
    # meta.yaml is written once: what was added belongs to this start alone.
    assert resumed.meta.task == "why is the start slow?"
    with pytest.raises(OperatorError, match="empty"):
        again(planned(), " \n")


TAMPERED = [
    {"tools_allowlist": ("Grep", "Ls", "ReadFile", "cat", "EditFile")},
    {"tools_allowlist": ("Grep", "Ls", "ReadFile")},
    {"tools_allowlist": ()},
    {"safe_commands": ("scout_0be1", "plan_0be1", "summarize_0be1", "merge_0be1")},
    {"safe_commands": ("scout_0be1",)},
    {"human_only_commands": ()},
    {"human_only_commands": ("merge_0be1",)},
    {"config_hash": "00000000"},
    {"run_type": "fix"},
    {"run_type": "review"},
    {"run_type": "root"},
    {"short_id": "c0de"},
    {"short_id": ""},
    {"short_id": "../../x"},
    {"run_name": "26-03-01_0915__why-is-the-start-slow__c0de"},
    {"run_name": "../../etc"},
    {"run_name": "26-03-01_0915__why__0be1/../x"},
    {"isolation": "airtight"},
    # The seal itself recomputed for more than the type may have.
    {
        "tools_allowlist": ("Grep", "EditFile"),
        "config_hash": policy.config_hash(
            ["Grep", "EditFile"], ["scout_0be1", "plan_0be1", "summarize_0be1"], ["merge_0be1", "apply_0be1"]
        ),
    },
]


@pytest.mark.parametrize("changes", TAMPERED, ids=[f"{index}-{'-'.join(each)}" for index, each in enumerate(TAMPERED)])
def test_an_edited_envelope_is_refused(changes: dict[str, Any]) -> None:
    """T144: whatever was edited in meta.yaml, by whomever."""
    made = planned()
    with pytest.raises(Tampered):
        again(made, meta=records.replace(made.meta, **changes))


def test_the_seal_in_the_state_has_to_agree() -> None:
    """T144: an envelope replaced as a whole, seal included, still differs from the state's."""
    made, other = planned(), planned("review")
    whole = records.replace(other.meta, run_name=made.meta.run_name)
    with pytest.raises(Tampered):
        again(made, meta=whole)
    with pytest.raises(Tampered):
        again(made, state=crashed(made, config_hash="00000000"))


@pytest.mark.parametrize("had", LEVELS)
@pytest.mark.parametrize("there", LEVELS)
def test_a_run_never_goes_on_with_less_isolation_than_it_had(had: str, there: str) -> None:
    """T143: the same envelope, or none."""
    made = planned(isolation=had)
    if LEVELS.index(there) < LEVELS.index(had):
        with pytest.raises(HostError, match="isolation"):
            again(made, isolation=there)
    else:
        assert again(made, isolation=there).meta.isolation == had


BAD_SESSIONS = ["../x", "--flag", "-x", "a b", "a\nb", "x" * 129, "\ud800", "é", "$(id)", "a/b", ".", "a\0b"]


@pytest.mark.parametrize("session", BAD_SESSIONS, ids=range(len(BAD_SESSIONS)))
def test_a_session_that_is_no_plain_word_is_not_handed_on(session: str) -> None:
    """T145: P22: it would become a word of a command line."""
    with pytest.raises(AgentError, match="session") as caught:
        again(planned(), state=crashed(planned(), session_id=session))
    assert caught.value.code == 3


@pytest.mark.parametrize("session", ["x", "ses_0A1b", "0a0a0a0a-1111-4222-8333-444444444444", "thread:1.2", "x" * 128])
def test_a_session_in_any_engines_spelling_is_handed_on(session: str) -> None:
    assert session_of(again(planned(), state=crashed(planned(), session_id=session))) == session


# --- for people and for the ledger ------------------------------------------------------------------------------------


def test_the_record_of_a_plan_names_no_value_of_the_environment() -> None:
    """T154: names only; secret-looking words of the command line are taken out."""
    engine = registry.engine("command")
    made = planned(engine=engine, mind=None, argv=("tool", "--password=hunter2secret9"))
    record = plan.describe(made, ["PATH", "HOME"])
    assert record["environment"] == ["HOME", "PATH"]
    assert record["argv"] == ["tool", "--password=[redacted]"]
    assert record["stdin_bytes"] == len(made.command.stdin)
    assert record["commands"] == ["scout_0be1", "plan_0be1", "summarize_0be1", "merge_0be1", "apply_0be1"]
    assert json.loads(json.dumps(record)) == record


@pytest.mark.parametrize(
    ("task", "title"),
    [
        ("find it", "find it"),
        (" a\n\n b\tc ", "a b c"),
        ("my password=hunter2secret9 leaks", "my password=[redacted] leaks"),
        ("\x1b[2Jgone\u202e", "\\x1b[2Jgone\\u202e"),
        ("x" * 500, "x" * 199 + "…"),
    ],
)
def test_a_title_is_one_line_that_anybody_may_see(task: str, title: str) -> None:
    assert plan.title(task) == title


def test_any_entry_of_the_ledger_can_draw_the_row() -> None:
    made = planned("review", "is it\nsafe?")
    state = running(
        status=Status.CRASHED, phase=Phase.SETTLED, exit_code=1, usage={"input_tokens": 3}, patch={"added": 1},
        failure=Failure(kind=FailureKind.TOOL_ERROR, message="m" * 100_000, last_safe_artifact="report.md"),
    )  # fmt: skip
    facts = plan.facts(made.meta, state)
    assert len(json.dumps(facts)) < 4096
    expected = {
        "id": "0be1", "type": "review", "engine": "hollow", "agent": "cipher", "task": "is it safe?", "status": "CRASHED",
        "exit_code": 1, "usage": {"input_tokens": 3}, "patch": {"added": 1}, "config_hash": made.meta.config_hash,
    }  # fmt: skip
    assert {key: facts[key] for key in expected} == expected
    assert facts["failure"] == {"kind": "tool_error", "message": "m" * 500}
    assert plan.facts(made.meta, running())["failure"] is None


def test_a_plan_is_made_without_a_look_at_the_disk() -> None:
    """T121: the folder of the scene does not exist, and does not after."""
    nowhere = Path("/nonexistent/agent-box/shop")
    made = planned(layout=Layout(nowhere))
    assert naming.parse(made.meta.run_name) is not None
    assert not nowhere.parent.exists()
    assert TOKEN not in json.dumps(plan.describe(made, []))
