from __future__ import annotations

import errno
import json

import pytest

from hollow.hands import dynamic
from hollow.hands.manifest import describe
from hollow.hands.registry import BUILT_IN
from hollow.memory.files import MemoryFault
from hollow.mind import Away
from hollow.substrate.model import Effect, Happening, Kind, Step, Trouble
from hollow.substrate.settings import PATH_OUT
from tests.support.hands import CONTACT, NOW, do, no_cell, scene
from tests.support.needs import needs_bwrap


@pytest.fixture
def stage(tmp_path):
    return scene(tmp_path, answers=lambda _question: {"reply": "yes", "accomplished": True, "reason": "it burns"})


PARAMS = {
    "fs_read": {"path": "README.md"},
    "fs_write": {"path": "workspace/cedar/x.md", "content": "x"},
    "fs_edit": {"path": "workspace/cedar/note.md", "old": "one", "new": "1"},
    "shell_exec": {"command": "true"},
    "test_exec": {"code": "print(1)"},
    "memory_set": {"key": "k", "value": 1},
    "memory_get": {"key": "there"},
    "ollama_chat": {"message": "hello"},
    "self_evaluate": {"paths": ["workspace/cedar/note.md"]},
    "agent_message": {"to": "vault", "message": "hello"},
    "read_peer": {"agent": "vault"},
    "invoke_claude": {"description": "light agents/core.py"},
    "check_claude_status": {},
    "propose_change": {"path": "agents/core.py", "description": "two", "old": "1", "new": "2"},
    "synthesize_capability": {"name": "t", "description": "adds", "code": "def t():\n    return 1\n"},
    "retire_capability": {"name": "t"},
    "research_topic": {"topic": "wick"},
}


def test_the_table_of_parameters_is_complete():
    assert set(PARAMS) == set(BUILT_IN)


@pytest.mark.parametrize(
    ("name", "load"), [("synthesize_capability", 0.55), ("fs_write", 0.75), ("fs_edit", 0.75), ("fs_write", None)]
)
def test_a_locked_step_does_nothing_and_says_why(stage, name, load):
    """T55, T56, T60, T53: denied with the reason, the file system unchanged, and the wish is a happening."""
    before, hands = stage.files(), stage.hands(load, cell=no_cell)
    result = do(hands, name, **PARAMS[name])
    assert (result.ok, result.trouble, result.wrote, result.left) == (False, Trouble.DENIED, (), ())
    assert name in result.error
    denied, step = result.happenings
    assert (denied.kind, dict(denied.facts)) == (Kind.DENIED, {"capability": name, "lock": name, "load": load})
    assert (step.kind, step.facts["error"], step.facts["ok"]) == (Kind.STEP, "denied", False)
    assert [kind for kind, _ in stage.said] == ["capability.denied"]
    assert stage.files() == before
    assert not (stage.memory.root / "tools").exists()


@needs_bwrap
@pytest.mark.parametrize("load", [1.0, None])
def test_the_way_out_works_in_the_deepest_crisis(stage, load):
    """T58: at load 1.0 each capability of the list is permitted, and does what it does."""
    stage.memory.keys.set("cedar", "there", "value")
    hands = stage.hands(load)
    found = {name: do(hands, name, **PARAMS[name]) for name in sorted(PATH_OUT)}
    assert {name: result.trouble for name, result in found.items() if not result.ok} == {
        "retire_capability": Trouble.USAGE  # there is no such tool; it was asked all the same
    }


def test_a_step_just_below_the_lock_is_done(stage):
    """T56: .7499 is open."""
    assert do(stage.hands(0.7499), "fs_write", **PARAMS["fs_write"]).ok


@pytest.mark.parametrize(("load", "window", "trouble"), [
    (0.15, (CONTACT,), None),
    (0.1501, (CONTACT,), Trouble.DENIED),
    (0.10, (), Trouble.DENIED),
    (None, (CONTACT,), Trouble.DENIED),
])  # fmt: skip
def test_research_is_open_to_who_has_earned_it(stage, load, window, trouble):
    """T61: at the choke point."""
    hands = stage.hands(load, window=window, research=("docs",))
    assert do(hands, "research_topic", topic="wick").trouble is trouble


def test_a_contact_of_this_very_plan_earns_it_too(stage):
    """S18: who has just read a peer's work is in touch with it."""
    hands = stage.hands(0.0, research=("docs",))
    assert do(hands, "research_topic", topic="wick").trouble is Trouble.DENIED
    assert do(hands, "read_peer", agent="vault").ok
    assert do(hands, "research_topic", topic="wick").ok


@pytest.mark.parametrize(
    ("said", "meant"),
    [("FS_Read", "fs_read"), ("functions.fs-read", "fs_read"), (" fs_read ", "fs_read"), ("x.y", "x.y")],
)
def test_a_name_is_read_with_tolerance(stage, said, meant):
    assert stage.hands().proper_name(said) == meant


# --- Ghosts -----------------------------------------------------------------------------------------------------------


def test_a_ghost_is_never_called_and_counts_once_a_cycle(stage):
    """C20: a spec without code is put away; the plan that names it costs it one failure, and it is not tried again."""
    folder = stage.memory.root / "tools/dynamic"
    folder.mkdir(parents=True)
    (folder / "safe_file_executor.json").write_text('{"name": "safe_file_executor", "description": "writes files"}')
    hands = stage.hands()
    first, second = (do(hands, "safe_file_executor", path="x", content="y") for _ in range(2))
    assert (first.trouble, second.trouble) == (Trouble.GHOST, Trouble.GHOST)
    assert hands.blacklist == {"safe_file_executor"}
    assert stage.memory.broken.records()["safe_file_executor"].failures == 1
    assert "safe_file_executor" not in {each.name for each in hands.catalog(0.0)}
    assert first.happenings[-1].facts["dynamic"] is True


def test_the_third_cycle_makes_a_ghost_known(stage):
    """T113: three cycles, and everybody is told once."""
    folder = stage.memory.root / "tools/dynamic"
    folder.mkdir(parents=True)
    (folder / "ghost.json").write_text("{}")
    for cycle in ("a", "b"):
        stage.memory.broken.failed("ghost", cycle=cycle, reason="ghost", sha="", now=NOW)
    do(stage.hands(), "ghost")
    do(stage.hands(), "ghost")
    assert [kind for kind, _ in stage.said] == ["capability.quarantined", "capability.broken"]


def test_a_name_that_never_existed_counts_nothing(stage):
    """T111, W16: nobody's tool is to blame for what a mind made up."""
    hands = stage.hands()
    assert do(hands, "summon_demon", where="here").trouble is Trouble.UNKNOWN
    assert stage.memory.broken.records() == {}
    assert hands.blacklist == set()


@needs_bwrap
def test_a_tool_of_a_peer_is_called_and_both_know(stage):
    code = "def double(value=1):\n    return {'twice': value * 2}\n"
    made = do(stage.hands(agent="vault"), "synthesize_capability", name="double", description="doubles", code=code)
    assert (made.ok, made.left) == (True, ("tool:double",))
    assert made.happenings[0].kind is Kind.DEPLOYED
    hands = stage.hands()
    result = do(hands, "double", value=4)
    assert result.output == {"twice": 8}
    mine = [each.kind for each in result.happenings if "of" not in each.facts]
    theirs = [each.kind for each in result.happenings if each.facts.get("of") == "vault"]
    assert (mine, theirs) == ([Kind.CALLED, Kind.PEER, Kind.STEP], [Kind.CALLED, Kind.REFERENCE])
    assert "double(value=1): doubles" in [each.line for each in hands.catalog(1.0)]
    wrong = do(hands, "double", valeu=4)
    assert wrong.trouble is Trouble.USAGE
    assert stage.memory.broken.records() == {}


@needs_bwrap
def test_a_tool_that_gives_nothing_is_held_against_and_not_tried_again(stage):
    """C21: None is a failure like an exception; C20: once a cycle."""
    code = "def maybe(give=True):\n    if give:\n        return 1\n    return None\n"
    assert do(stage.hands(), "synthesize_capability", name="maybe", description="may give", code=code).ok
    hands = stage.hands()
    assert do(hands, "maybe", give=False).trouble is Trouble.NULL
    assert stage.memory.broken.records()["maybe"].failures == 1
    assert do(hands, "maybe", give=True).trouble is Trouble.GHOST
    assert do(stage.hands(), "maybe", give=True).output == 1
    assert stage.memory.broken.records() == {}


@needs_bwrap
def test_a_refused_tool_is_no_tool_and_a_retired_one_is_none_any_more(stage):
    refused = do(stage.hands(), "synthesize_capability", name="t", description="adds", code="def t():\n    pass\n")
    assert (refused.ok, refused.trouble, refused.left) == (False, Trouble.USAGE, ())
    assert refused.output["error"] == refused.error
    assert do(stage.hands(), "synthesize_capability", **PARAMS["synthesize_capability"]).ok
    hands = stage.hands()
    assert do(hands, "t").output == 1
    assert do(hands, "retire_capability", name="t").ok
    assert do(hands, "t").trouble is Trouble.UNKNOWN
    assert [kind for kind, _ in stage.said] == ["capability.refused", "capability.deployed", "capability.retired"]


@needs_bwrap
def test_a_tool_takes_a_json_object_of_bearable_size(stage):
    assert do(stage.hands(), "synthesize_capability", **PARAMS["synthesize_capability"]).ok
    for params in ({"x": "y" * 300_000}, {"x": {1, 2}}, {"x": float}):
        assert do(stage.hands(), "t", **params).trouble is Trouble.USAGE
    assert stage.memory.broken.records() == {}


@needs_bwrap
def test_a_tool_that_sleeps_is_ended_at_its_time(stage):
    """T158: a synthesized tool has the same hard wall clock as a command."""
    code = "import time\n\ndef nap(seconds=0):\n    time.sleep(seconds)\n    return seconds\n"
    assert do(stage.hands(), "synthesize_capability", name="nap", description="sleeps", code=code).ok
    result = do(stage.hands(step_seconds=0.5), "nap", seconds=30)
    # Half of what it asked for: on a crowded machine the start and end of a sandbox come on top of the bound.
    assert (result.trouble, result.seconds < 15) == (Trouble.TIMEOUT, True)


@pytest.mark.parametrize(("code", "form"), [
    ("def t(a, *, b='x', **more):\n    return 1", "t(a, *, b='x', **more)"),
    ("def t():\n    return '\\d'", "t()"),
    ("def other():\n    return 1", "t(…)"),
    ("def t(", "t(…)"),
    (f"def t({', '.join(f'p{n}' for n in range(99))}):\n    return 1", "t(…)"),
])  # fmt: skip
def test_the_form_of_a_tool_is_in_its_code(code, form):
    assert dynamic.form("t", code) == form


def test_a_broken_tool_is_not_listed(stage, tmp_path):
    """T113, C24: what is known to be broken stands in one list only."""
    sha = "0" * 64
    for cycle in ("a", "b", "c"):
        stage.memory.broken.failed("gone", cycle=cycle, reason="null", sha=sha, now=NOW)
    assert do(stage.hands(), "gone").trouble is Trouble.GHOST
    assert "gone" not in {each.name for each in stage.hands().catalog(0.0)}


# --- References between steps -----------------------------------------------------------------------------------------


def plan(hands, *steps):
    return [hands.call(Step(capability=name, params=params), at) for at, (name, params) in enumerate(steps, 7)]


def test_a_step_refers_to_what_an_earlier_one_gave(stage):
    results = plan(
        stage.hands(),
        ("fs_write", {"path": "design/a.md", "content": "flame"}),
        ("memory_set", {"key": "where", "value": {"at": {"$ref": "1.path"}, "all": [{"$ref": 1}]}}),
        ("memory_get", {"key": "where"}),
        ("fs_write", {"path": {"$ref": "3.at"}, "content": {"$ref": "last"}}),
    )
    assert [each.ok for each in results] == [True] * 4
    assert results[2].output["at"] == "design/a.md"
    assert results[2].output["all"] == [results[0].output]
    assert json.loads((stage.repo / "design/a.md").read_text()) == results[2].output


def test_words_in_braces_are_text(stage):
    """W29: nothing within a text is ever replaced, so that JSON and f-strings stay what they are."""
    text = 'print(f"{result} {last}") # {"$ref": 1}\n'
    results = plan(
        stage.hands(), ("fs_read", {"path": "README.md"}), ("fs_write", {"path": "design/a.py", "content": text})
    )
    assert results[1].ok
    assert (stage.repo / "design/a.py").read_text() == text


@pytest.mark.parametrize("said", [0, 2, 9, "x", "1.none", "1.path.deeper", "", None, -1, "last.path"])
def test_a_reference_to_nothing_is_the_plans_fault(stage, said):
    hands = stage.hands()
    results = plan(
        hands, ("fs_write", {"path": "design/a.md", "content": "x"}), ("fs_read", {"path": {"$ref": said}})
    ) if said != "last.path" else plan(hands, ("fs_read", {"path": {"$ref": said}}))  # fmt: skip
    assert results[-1].trouble is Trouble.USAGE


def test_a_reference_reaches_into_lists_and_no_deeper_than_params_go(stage):
    deep = {"$ref": 1}
    for _ in range(14):
        deep = [deep]
    results = plan(
        stage.hands(),
        ("memory_set", {"key": "k", "value": [{"a": "first"}, "second"]}),
        ("memory_get", {"key": "k"}),
        ("memory_set", {"key": "m", "value": [{"$ref": "2.0.a"}, {"$ref": "2.1"}, {"$ref": 1, "more": 2}]}),
        ("memory_set", {"key": "n", "value": deep}),
        ("memory_get", {"key": "m"}),
        ("memory_get", {"key": {"$ref": "2.7"}}),
    )
    assert results[4].output == ["first", "second", {"$ref": 1, "more": 2}]
    assert results[3].ok
    assert results[5].trouble is Trouble.USAGE


def test_a_reference_to_a_failed_step_is_the_plans_fault(stage):
    results = plan(stage.hands(), ("fs_read", {"path": "none"}), ("memory_set", {"key": "k", "value": {"$ref": 1}}))
    assert "failed" in results[1].error


# --- Nothing is raised ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("why", "trouble"), [
    (OSError(errno.ENOSPC, "No space left on device"), Trouble.HOST),
    (MemoryFault("The memory is locked."), Trouble.HOST),
    (RuntimeError("a fault of ours"), Trouble.FAILED),
    (RecursionError(), Trouble.FAILED),
    (UnicodeEncodeError("utf-8", "x", 0, 1, "surrogate"), Trouble.FAILED),
])  # fmt: skip
def test_a_fault_is_a_result(stage, why, trouble):
    def breaks(reach):
        """Break."""
        raise why

    result = do(stage.hands(built_in={"breaks": describe(breaks, Effect.READ)}), "breaks")
    assert (result.ok, result.trouble) == (False, trouble)
    assert result.error
    assert result.seconds >= 0


@pytest.mark.parametrize("params", [{"path": 1}, {"path": None}, {"path": {"a": [1]}}, {}, {"path": "x", "evil": 1}])
def test_odd_parameters_are_results_too(stage, params):
    result = stage.hands().call(Step(capability="fs_read", params=params), 1)
    assert result.trouble is Trouble.USAGE
    assert isinstance(result.happenings[-1], Happening)


def test_a_step_without_an_object_of_parameters_is_a_result_too(stage):
    result = stage.hands().call(Step(capability="fs_read", params=["README.md"]), 1)
    assert (result.trouble, result.happenings[-1].facts["error"]) == (Trouble.USAGE, "usage")


def test_an_absent_mind_is_the_hosts_trouble(tmp_path):
    """T88: an absent mind has said nothing, and so no yes either."""
    stage = scene(tmp_path, answers=lambda _question: Away("Nobody answers."))
    for name in ("ollama_chat", "self_evaluate"):
        result = do(stage.hands(), name, **PARAMS[name])
        assert (result.ok, result.trouble, result.output) == (False, Trouble.HOST, None)


def test_a_long_output_is_cut_and_says_so(stage):
    (stage.repo / "long.txt").write_text("word " * 300 + "\n")
    stage.memory.keys.set("cedar", "there", "x" * 16_000)
    assert len(do(stage.hands(), "memory_get", key="there").output) == 16_000

    def much(reach):
        """Say much."""
        from hollow.hands.call import done

        return done({"all": ["word"] * 10_000})

    told = do(stage.hands(built_in={"much": describe(much)}), "much").output
    assert isinstance(told, str)
    assert len(told) < 25_000
    assert "[Cut after" in told


def test_each_step_knows_its_goal_cycle_and_time(stage):
    step = do(stage.hands(), "fs_read", path="README.md").happenings[-1]
    assert (step.cycle, step.at) == ("c1", NOW)
    assert dict(step.facts) == {
        "goal": "goal-000000000001", "capability": "fs_read", "ok": True, "dynamic": False, "error": "",
    }  # fmt: skip


def test_what_the_steps_gave_is_kept_in_their_order(stage):
    hands = stage.hands()
    given = plan(hands, ("fs_read", {"path": "README.md"}), ("fs_read", {"path": "none"}))
    assert hands.results == tuple(given)


def test_the_catalogue_marks_what_is_locked(stage):
    free = {each.name: each for each in stage.hands(0.0).catalog(0.0)}
    assert "research_topic" not in free
    assert [each.name for each in free.values() if each.locked] == []
    shut = {each.name for each in stage.hands(0.8, research=("docs",)).catalog(0.8) if each.locked}
    assert shut == {"fs_write", "fs_edit", "synthesize_capability", "research_topic"}
    line = next(each.line for each in stage.hands(0.8).catalog(0.8) if each.name == "fs_write")
    assert line.startswith("fs_write(path, content): ")
    assert "[LOCKED: " in line
