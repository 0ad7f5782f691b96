from __future__ import annotations

import pytest

from hollow.substrate.crisis import message, step
from hollow.substrate.kinds import CRISIS, allowed, crisis_goal, kind_of
from hollow.substrate.suffering import RATES, Band, band, force_reset, load
from tests.support.pains import NOON, pain, suffering, weighing

# --- The state machine ------------------------------------------------------------------------------------------------


def run(loads, s=None):
    """Whether each cycle began a crisis, and whether it broke one; what is broken is reset."""
    s = s or suffering(pain("futility", 0.95))
    seen = []
    for weight in loads:
        s, onset, reset = step(s, weight)
        seen.append(("onset" if onset else "") + ("reset" if reset else ""))
        if reset:
            s, _ = force_reset(s, NOON, s.crisis_cycles)
    return s, seen


def test_three_in_a_row_are_broken():
    """T65: everything active becomes history, with the count."""
    s, seen = run([0.95, 0.90, 1.0])
    assert seen == ["onset", "", "reset"]
    assert (s.active, s.crisis_cycles) == ((), 0)
    assert s.history[0].note.endswith("after 3 consecutive cycles")


def test_a_calm_cycle_between_them_counts():
    """T66: crisis, crisis, calm, crisis is no reset, and two onsets."""
    s, seen = run([0.95, 0.95, 0.89, 0.95])
    assert seen == ["onset", "", "", "onset"]
    assert s.crisis_cycles == 1


def test_one_that_was_not_broken_in_time_is_broken_next():
    """T67: killed between the count and the reset, the next cycle makes up for it."""
    s, _, reset = step(suffering(pain("futility", 0.95), crisis_cycles=3), 0.95)
    assert reset
    assert s.crisis_cycles == 4


def test_what_the_peers_are_told():
    """T64: the seed's sentence, with two decimals, the worst first, once for an onset."""
    s = suffering(pain("futility", 0.05), pain("existential_threat", 0.904))
    assert message(s) == "I am in crisis (suffering 0.95/1.0). Active stressors: existential_threat, futility."
    assert run([0.95, 0.95])[1].count("onset") == 1


# --- Kinds of goals ---------------------------------------------------------------------------------------------------

OBJECTIVES = {
    "help": ["Ask the operator for help", "ask for help with the parser", "Seek help from anybody", "invoke_claude for classifier.py",
             "Request human help"],
    "contact": ["ask peer", "Ask vault to build a parser", "write a message to cedar about load", "Read what vault wrote", "read cedar's notes",
                "Tell both peers what I found", "Contact cipher", "Send a short note to the others", "message vault"],
    "synthesize": ["synthesize a JSON validator", "Create a new tool for parsing", "Build the missing capability", "deploy raw_io_verify"],
    "resolve": ["Resolve repeated_failure by finishing small goals", "Ease my wrapper_dependency", "Address the stressor futility", "reduce my load"],
    "introspect": ["Reflect on my last cycles", "Examine why my goals fail", "Understand my own suffering", "Introspect", "self-evaluate the report",
                   "Read my own last outcome"],
    "build": ["build parser", "Build a parser and ask vault", "Write a note about the parser to workspace", "Fix the crisis in the build",
              "Improve the message queue", "Rename the stressor table"],
    "explore": ["Survey the repository", "Resolve the bug in parser.py", "Review hollow/cycle.py for errors", "Reduce the size of my parser",
                "Map the modules", "", "xyzzy", "Analyze parser.py to resolve my repeated_failure"],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "objective"), [(kind, each) for kind, many in OBJECTIVES.items() for each in many])
def test_the_earliest_phrase_tells_the_kind(kind, objective):
    """T63: an objective is what it begins with."""
    assert kind_of(objective, ["wrapper_dependency", ""]) == kind


@pytest.mark.parametrize(("kind", "objective"), [(kind, each) for kind, many in OBJECTIVES.items() for each in many])
def test_a_crisis_leaves_self_examination_and_contact(kind, objective):
    """T63: at .92 "build parser" is closed, "ask peer" is open; from .55 on synthesizing is closed (F11)."""
    own = ["wrapper_dependency"]
    assert allowed(objective, band(0.92), own) is (kind in CRISIS)
    for weight in (0.55, 0.76):
        assert allowed(objective, band(weight), own) is (kind != "synthesize")
    for weight in (0.0, 0.54):
        assert allowed(objective, band(weight), own)


@pytest.mark.parametrize("name", [*sorted(RATES), "wrapper_dependency", "build_everything", "ask"])
def test_the_goal_of_a_crisis_is_open_in_it(name):
    """T63: what replaces a closed goal names the worst stressor and its condition, and is itself allowed."""
    s = suffering(pain("ennui", 0.1), pain(name, 0.9, condition="a peer builds a tool.\nThen more"))
    goal = crisis_goal(s)
    assert allowed(goal, Band.CRISIS)
    assert name in goal
    assert goal.endswith("towards this: a peer builds a tool. Then more.")
    assert "\n" not in goal


def test_a_goal_of_a_crisis_without_a_stressor():
    assert allowed(crisis_goal(suffering()), Band.CRISIS)
    assert "it no longer holds" in crisis_goal(suffering(pain("ennui", condition="")))


def test_crisis_begins_at_ninety():
    """T63: .90 is one."""
    assert band(load(weighing(0.90))) is Band.CRISIS
