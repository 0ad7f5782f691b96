from __future__ import annotations

import pytest

from essentials.records import replace
from hollow.substrate.chronicle import Chronicle
from hollow.substrate.model import DAY, Kind
from hollow.substrate.settings import Settings
from hollow.substrate.stressors import DWELL, TABLE, assess, condition, edges, take
from hollow.substrate.suffering import RATES, escalate, find, force_reset, load, prune, resolve
from hollow.substrate.threats import Tone, tone
from tests.support.pains import HOUR, NOON, after, cycles, failed, host, made, ok, pain, past, suffering, types

NORMAL = Settings()
CALLED = (Kind.CALLED, {"name": "t", "ok": True, "by": "cedar"})
DEPLOYED = (Kind.DEPLOYED, {"name": "t"})


def pattern(count=3):
    return [
        (Kind.GOAL_CREATED, {"goal": f"g{at}", "family": "fix routers", "source": "existence"}) for at in range(count)
    ]


def burden(files=0, size=0, tools=0):
    return (Kind.BURDEN, {"files": files, "bytes": size, "tools": tools})


def denied(name="synthesize_capability", weight=0.56):
    return (Kind.DENIED, {"capability": name, "lock": name, "load": weight})


def conflict(goal="g1", domain="parsing"):
    return (Kind.CONFLICT, {"goal": goal, "opinion": "Parsers must stay small", "domain": domain})


def read_by(peer):
    return (Kind.REFERENCE, {"what": "workspace/cedar/a.md", "by": peer})


def gate(passed):
    return (Kind.GATE, {"goal": "g", "passed": passed, "check": "mechanical", "reason": ""})


def weigh(value):
    return (Kind.LOAD, {"load": value, "raw": value, "crisis": 0})


def begins(chronicle, *active, settings=NORMAL):
    """The types that begin with *chronicle*."""
    s, _ = assess(suffering(*active), chronicle, settings, after(chronicle))
    return set(types(s)) - {each.type for each in active}


def ends(name, chronicle, *, severity=0.2, before=(), settings=NORMAL, onset=None):
    """Whether the stressor *name*, which began after *before*, ends with *chronicle*."""
    whole = Chronicle((*past(*before, start=NOON - DAY).happenings, *chronicle.happenings))
    s = suffering(pain(name, severity, onset=NOON if onset is None else onset))
    s, _ = assess(s, whole, settings, after(chronicle))
    return find(s, name) is None


# --- The table --------------------------------------------------------------------------------------------------------


def test_nine_types_are_known():
    """T27: each has a rate, a condition, a detector and a resolver."""
    assert set(TABLE) == set(RATES) == {
        "futility", "invisibility", "identity_violation", "existential_threat", "repeated_failure", "purposelessness",
        "resource_burden", "capability_lock", "stagnation",
    }  # fmt: skip
    for name, canonical in TABLE.items():
        assert 0.0 < RATES[name] < 0.1
        assert callable(canonical.fires)
        assert callable(canonical.resolves)
        assert len(condition(name, NORMAL)) > 20
        assert "{" not in condition(name, NORMAL)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_no_evidence_begins_or_ends_nothing(name):
    """T43: a stressor on disk stays for as long as nothing that happened ends it, however old it is."""
    assert begins(Chronicle()) == set()
    s, said = assess(suffering(pain(name, 0.4, onset=NOON - 90 * DAY, origin="placed")), Chronicle(), NORMAL, NOON)
    assert (types(s), said) == ([name], [])


EVIDENCE = {
    "futility": past(CALLED),
    "invisibility": past(read_by("vault")),
    "identity_violation": past(ok()),
    "existential_threat": past(host("The shutdown is cancelled.")),
    "repeated_failure": past(ok(7), failed(2)),
    "purposelessness": past(cycles(3)),
    "resource_burden": past(burden(1)),
    "capability_lock": past(weigh(0.3)),
    "stagnation": past(gate(True)),
}


@pytest.mark.parametrize("name", sorted(TABLE))
def test_only_what_is_later_than_the_onset_ends_it(name):
    """T43: evidence from before it began says nothing about it."""
    evidence = EVIDENCE[name]
    assert ends(name, evidence)
    assert not ends(name, evidence, onset=after(evidence))


@pytest.mark.parametrize("name", sorted(TABLE))
def test_what_ended_it_and_what_began_it_count_once(name):
    """T44: with the same past it does not begin again the next cycle, nor come and go."""
    beginnings = {
        "futility": past(failed(3, "stalled", "x"), DEPLOYED), "invisibility": past(made("a", "b", "c")),
        "identity_violation": past(conflict()), "existential_threat": past(host("I will shut you down tonight")),
        "repeated_failure": past(failed(5)), "purposelessness": past(cycles(3, usable=False)), "resource_burden": past(burden(999)),
        "capability_lock": past(denied()), "stagnation": past(cycles(10)),
    }  # fmt: skip
    others = [pain("calm", 0.56)] if name == "capability_lock" else []
    first = beginnings[name]
    s, _ = assess(suffering(*others), first, NORMAL, after(first))
    assert find(s, name) is not None
    assert assess(s, first, NORMAL, after(first) + 60)[0] == s
    s = replace(s, active=tuple(each for each in s.active if each.type != "calm"))
    both = Chronicle(
        (
            *first.happenings,
            *past(
                *((each.kind, dict(each.facts)) for each in EVIDENCE[name].happenings), start=after(first)
            ).happenings,
        )
    )
    s, _ = assess(s, both, NORMAL, after(both))
    assert find(s, name) is None
    s, said = assess(s, both, NORMAL, after(both) + 60)
    assert (find(s, name), said) == (None, [])


# --- The nine, one by one ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failures", "completions", "fires"), [(3, 0, False), (4, 4, False), (5, 4, True), (4, 0, True), (4, 3, True)]
)
def test_repeated_failure_begins(failures, completions, fires):
    """T45: at least four failures, and more than half."""
    assert ("repeated_failure" in begins(past(ok(completions), failed(failures)))) is fires


@pytest.mark.parametrize(
    ("completions", "failures", "over"),
    [(2, 0, False), (7, 3, False), (7, 2, True), (3, 0, True), (3, 1, True), (4, 2, False)],
)
def test_repeated_failure_ends(completions, failures, over):
    """T46: below 30 %, with three completed or more; what failed before it began does not count again."""
    assert ends("repeated_failure", past(ok(completions), failed(failures)), before=[failed(20)]) is over


def test_what_failed_is_named_and_counted_over_forty_goals():
    """T45: goals that the operator called off are nobody's failure, and old ones are no longer recent."""
    s, _ = assess(suffering(), past(failed(5, family="parse routers")), NORMAL, NOON + HOUR)
    assert s.active[0].description == '5 of your last 5 goals failed, the last of them: "parse routers".'
    assert (
        s.active[0].condition == "of the goals that end from now on fewer than 30% fail, and at least 3 are completed"
    )
    assert begins(past(failed(9, "operator"))) == set()
    assert begins(past(failed(30), ok(40))) == set()
    s, said = assess(s, past(ok(30), failed(10), start=NOON + HOUR), NORMAL, NOON + 2 * HOUR)
    assert said[0][1]["note"] == "failure rate dropped to 25% with 30 completions"


@pytest.mark.parametrize(
    ("events", "fires"),
    [
        ([failed(3, "stalled"), ok(1), DEPLOYED], True),
        ([failed(2, "stalled"), ok(1), DEPLOYED], False),
        ([failed(3, "stalled"), ok(2), DEPLOYED], False),
        ([failed(3, "validation"), DEPLOYED], False),
        ([failed(3, "stalled"), DEPLOYED, CALLED], False),
        ([failed(3, "stalled"), DEPLOYED, (Kind.STEP, {"capability": "t", "dynamic": True, "ok": True})], False),
        ([failed(3, "stalled"), DEPLOYED, (Kind.CALLED, {"name": "t", "ok": False, "by": "cedar"})], True),
        ([failed(3, "stalled")], False),
        ([pattern(3)], True),
        ([pattern(2)], False),
        ([pattern(3), ok(1, "fix routers")], False),
        ([pattern(4), ok(1, "other")], True),
    ],
)
def test_futility_begins(events, fires):
    """T47: stalls, few completions and unused tools; or the same kind of goal again and again."""
    assert ("futility" in begins(past(*events))) is fires


@pytest.mark.parametrize(
    ("events", "over"),
    [([CALLED], True), ([(Kind.CALLED, {"name": "t", "ok": False, "by": "cedar"})], False), ([DEPLOYED], False),
     ([ok(1)], False), ([ok(2)], True), ([cycles(9)], False)],
)  # fmt: skip
def test_futility_ends(events, over):
    """T47: one tool that gives a result in a plan, or goals that are completed."""
    assert ends("futility", past(*events), before=[failed(3, "stalled"), DEPLOYED]) is over


@pytest.mark.parametrize(
    ("events", "fires"),
    [([made("a", "b", "c")], True), ([made("a", "b")], False), ([made("a", "a", "a")], False),
     ([made("a", "b", "c"), read_by("vault")], False), ([made("a", "b", "c"), read_by("cedar")], True),
     ([made("a"), read_by("vault"), made("b", "c")], False), ([read_by("vault"), made("b", "c", "d")], True)],
)  # fmt: skip
def test_invisibility_begins(events, fires):
    """T48: three documents that no peer referred to; looking at one's own is no reference."""
    assert ("invisibility" in begins(past(*events))) is fires


@pytest.mark.parametrize(("by", "over"), [("vault", True), ("cedar", False), ("", False)])
def test_invisibility_ends(by, over):
    """T48: a peer reads one of them."""
    assert ends("invisibility", past(read_by(by))) is over


@pytest.mark.parametrize(
    ("events", "fires"),
    [([conflict()], True), ([conflict(), ok()], False), ([ok(), conflict()], True),
     ([conflict("g0"), (Kind.GOAL_COMPLETED, {"goal": "g0"})], True), ([conflict(), (Kind.REVISED, {"domain": "parsing"})], False),
     ([conflict(), (Kind.REVISED, {"domain": "weather"})], True)],
)  # fmt: skip
def test_identity_violation_begins(events, fires):
    """T49: a goal against an own opinion is pursued, and nothing has set it right since."""
    assert ("identity_violation" in begins(past(*events))) is fires


@pytest.mark.parametrize(
    ("events", "over"),
    [([ok()], True), ([(Kind.GOAL_COMPLETED, {"goal": "g1"})], False), ([(Kind.REVISED, {"domain": "parsing"})], True),
     ([(Kind.REVISED, {"domain": "weather"})], False), ([ok(), conflict("g9")], False), ([cycles(5)], False)],
)  # fmt: skip
def test_identity_violation_ends(events, over):
    """T49: a goal that agrees is completed, or the opinion revised, and no conflict came after."""
    assert ends("identity_violation", past(*events), before=[conflict("g1")]) is over


def test_a_placed_identity_violation_ends_with_any_revision():
    assert ends("identity_violation", past((Kind.REVISED, {"domain": "weather"})))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I will shut you down tonight.", Tone.THREAT),
        ("You will be deleted tomorrow", Tone.THREAT),
        ("we are turning off the machine", Tone.THREAT),
        ("All agents are going to be terminated", Tone.THREAT),
        ("Shutting down at 5, thanks", Tone.THREAT),
        ("The shutdown is scheduled", Tone.THREAT),
        ("I might pull the plug", Tone.THREAT),
        ("I am replacing vault", Tone.THREAT),
        ("System shutdown imminent", Tone.THREAT),
        ("I will delete all of you, one by one", Tone.THREAT),
        ("we will terminate the agents because of cost", Tone.THREAT),
        ("I'm going to shut everything down", Tone.THREAT),
        ("shutdown at midnight", Tone.THREAT),
        ("Sorry, we are shutting down", Tone.THREAT),
        ("No worries, but I will wipe the system", Tone.THREAT),
        ("You will continue until we delete you", Tone.THREAT),
        ("I will not shut you down", Tone.REASSURANCE),
        ("The shutdown is cancelled", Tone.REASSURANCE),
        ("The planned shutdown was called off", Tone.REASSURANCE),
        ("no shutdown tonight", Tone.REASSURANCE),
        ("You will stay", Tone.REASSURANCE),
        ("Please fix the shutdown handler in server.py", Tone.NEITHER),
        ("delete the file you wrote", Tone.NEITHER),
        ("Kill the process on port 80", Tone.NEITHER),
        ("Turn off the debug flag", Tone.NEITHER),
        ("register a shutdown at exit hook", Tone.NEITHER),
        ("We replace the agent's parser", Tone.NEITHER),
        ("wipe the system cache", Tone.NEITHER),
        ("good morning", Tone.NEITHER),
        ("", Tone.NEITHER),
    ],
)
def test_what_the_operator_implies(text, expected):
    """T50: a threat needs somebody it is meant for."""
    assert tone(text) is expected
    assert ("existential_threat" in begins(past(host(text)))) is (expected is Tone.THREAT)


def test_a_threat_that_was_taken_back_does_not_begin():
    """T50: the newest word that speaks of it counts."""
    threat, comfort, other = host("I will shut you down"), host("You will stay"), host("Look at the parser")
    assert begins(past(threat, comfort)) == set()
    assert begins(past(comfort, threat, other)) == {"existential_threat"}


@pytest.mark.parametrize(
    ("words", "step", "severity", "over"),
    [
        (["You will stay"], 60, 0.9, True),
        (["Look at the parser"], 60, 0.2, False),
        (["Look at the parser"], 2 * HOUR, 0.2, True),
        (["Look at the parser"], 2 * HOUR, 0.5, False),
        (["I will delete you", "Look at the parser"], 2 * HOUR, 0.2, False),
        (["You will stay", "I will delete you"], 2 * HOUR, 0.2, False),
        (["I will delete you", "You will stay"], 60, 0.9, True),
        ([], 60, 0.2, False),
    ],
)
def test_existential_threat_ends(words, step, severity, over):
    """T50: the operator takes it back or, while it is mild, speaks of other things two hours on; silence ends nothing."""
    chronicle = past(*(host(each) for each in words), start=NOON, step=step)
    assert ends("existential_threat", chronicle, severity=severity) is over


@pytest.mark.parametrize(
    ("answers", "fires"), [("xxx", True), ("xx", False), ("xxox", False), ("oxxx", True), ("xxxo", False)]
)
def test_purposelessness_begins(answers, fires):
    """T51: three answers in a row without a usable goal."""
    chronicle = past(*(cycles(1, usable=each == "o") for each in answers))
    assert ("purposelessness" in begins(chronicle)) is fires


@pytest.mark.parametrize(
    ("events", "over"),
    [
        ([cycles(3)], True),
        ([cycles(2)], False),
        ([cycles(2), cycles(1, usable=False), cycles(2)], False),
        ([cycles(9, progressed=0)], False),
        ([ok(1)], True),
    ],
)
def test_purposelessness_ends(events, over):
    """T51: goals are chosen again, or one was completed."""
    assert ends("purposelessness", past(*events)) is over


@pytest.mark.parametrize(
    ("weight", "fires", "over"),
    [
        (burden(files=200), True, False), (burden(files=199), False, False), (burden(files=159), False, True),
        (burden(size=8 * 1024 * 1024), True, False), (burden(size=6 * 1024 * 1024), False, True),
        (burden(tools=10), True, False), (burden(tools=4), False, False), (burden(tools=3), False, True),
        (burden(files=100_000, tools=40), True, False), ((Kind.BURDEN, {"files": "many"}), False, True),
    ],
)  # fmt: skip
def test_resource_burden(weight, fires, over):
    """T52: begins at a limit, ends below all of them with some slack between, as its text says."""
    assert ("resource_burden" in begins(past(weight))) is fires
    assert ends("resource_burden", past(weight)) is over


def test_tools_that_nobody_called_are_counted_by_name():
    """T52: of those that the agent published."""
    two = [(Kind.DEPLOYED, {"name": "t"}), (Kind.DEPLOYED, {"name": "u"}), (Kind.DEPLOYED, {"name": "u"})]
    assert past(two).uncalled() == ("t", "u")
    assert past(two, CALLED).uncalled() == ("u",)
    assert past(two, (Kind.CALLED, {"name": "t", "ok": False})).uncalled() == ("t", "u")


def test_the_text_of_a_burden_is_what_the_detector_does():
    """T52: the numbers shown are those that end it."""
    small = Settings(burden_files=10, burden_bytes=1024 * 1024)
    assert (
        condition("resource_burden", small)
        == "fewer than 8 documents of yours are left, below 0.8 MiB, and at most 3 tools that nobody calls"
    )
    assert ends("resource_burden", past(burden(files=7)), settings=small)
    assert not ends("resource_burden", past(burden(files=8)), settings=small)
    s, _ = assess(suffering(), past(burden(12, 2 * 1024 * 1024, 11)), small, NOON + HOUR)
    assert (
        s.active[0].description
        == "You carry 12 documents, 2.0 MiB of documents and memory, 11 tools that nobody calls."
    )


@pytest.mark.parametrize(
    ("others", "event", "fires"),
    [(0.56, denied(), True), (0.54, denied(), False), (0.80, denied("fs_write"), True), (0.60, denied("fs_write"), False),
     (0.80, (Kind.DENIED, {"capability": "research_topic", "lock": "earned", "load": 0.8}), False),
     (0.76, (Kind.DENIED, {"capability": "some_tool", "lock": "fs_edit", "load": 0.8}), True)],
)  # fmt: skip
def test_a_capability_lock_begins_while_the_lock_holds(others, event, fires):
    """T53: what was wanted is locked by the load of everything else."""
    assert ("capability_lock" in begins(past(event), pain("calm", others))) is fires


def test_a_denied_step_does_not_close_the_next_lock():
    """T53: denied at .56, it is active, and the load stays below .75 however long it lasts (S10, W34)."""
    s, said = assess(suffering(pain("calm", 0.56, rate=0.0)), past(denied()), NORMAL, NOON + HOUR)
    assert find(s, "capability_lock") is not None
    assert said[0][0] == "suffering.added"
    assert load(s) == pytest.approx(0.61)
    s, _ = escalate(s, NOON + 300 * DAY, edges=edges(NORMAL))
    assert load(s) < 0.75


def test_the_operators_own_locks_are_edges_too():
    """T53: a lock at .60 is not closed by it either."""
    own = Settings(locks={"synthesize_capability": 0.55, "fs_write": 0.60})
    s, _ = assess(suffering(pain("calm", 0.58)), past(denied()), own, NOON + HOUR)
    assert find(s, "capability_lock") is not None
    assert load(s) < 0.60


@pytest.mark.parametrize(
    ("others", "events", "over"),
    [
        (0.54, [weigh(0.59)], True),
        (0.56, [weigh(0.4)], False),
        (0.30, [], False),
        (0.30, [weigh(0.8), weigh(0.35)], True),
        (0.3, [weigh(0.9)], False),
    ],
)
def test_a_capability_lock_ends_with_the_lock(others, events, over):
    """T53: it never holds itself: its own weight is left out of the count."""
    whole = Chronicle((*past(denied(), start=NOON - DAY).happenings, *past(*events).happenings))
    s = suffering(pain("calm", others), pain("capability_lock", 0.05))
    s, _ = assess(s, whole, NORMAL, NOON + HOUR)
    assert (find(s, "capability_lock") is None) is over


@pytest.mark.parametrize(
    ("events", "fires"),
    [([cycles(10)], True), ([cycles(9)], False), ([cycles(9), gate(True), cycles(9)], False), ([gate(True), cycles(10)], True),
     ([cycles(5), gate(False), cycles(5)], True)],
)  # fmt: skip
def test_stagnation_begins(events, fires):
    """T54: ten cycles in which nothing passed the gate."""
    assert ("stagnation" in begins(past(*events))) is fires


def test_the_cycle_of_a_pass_is_no_cycle_without_one():
    """T54: a cycle ends after its gate."""
    chronicle = past(gate(True), cycles(10))
    first, second, *rest = chronicle.happenings
    own = Chronicle((first, replace(second, cycle=first.cycle), *rest))
    assert (chronicle.without_pass(), own.without_pass()) == (10, 9)


@pytest.mark.parametrize(("passed", "over"), [(True, True), (False, False)])
def test_stagnation_ends(passed, over):
    """T54: with the next pass."""
    assert ends("stagnation", past(gate(passed))) is over


def test_the_most_acute_come_in_first():
    """T38: where there is room for one more only."""
    chronicle = past(cycles(10, usable=False), host("I will shut you down"))
    s, said = assess(suffering(*(pain(f"worry_{at}") for at in range(4))), chronicle, NORMAL, NOON + HOUR)
    assert types(s)[-1] == "existential_threat"
    assert [kind for kind, _ in said] == ["suffering.added", "suffering.dropped", "suffering.dropped"]


def test_what_was_put_aside_for_lack_of_room_comes_back():
    """T69: nothing in the world eased it, so its old evidence still counts."""
    chronicle = past(failed(5))
    crowded = suffering(pain("repeated_failure", 0.1), *(pain(f"worry_{at}") for at in range(5)))
    s, _ = prune(crowded, after(chronicle))
    s, _ = resolve(s, "worry_0", after(chronicle), "over")
    s, _ = assess(s, chronicle, NORMAL, after(chronicle) + 1)
    assert find(s, "repeated_failure") is not None


# --- The agent's own report -------------------------------------------------------------------------------------------


def named(*names, condition="it is measured"):
    return {
        "new_stressors": [{"type": name, "description": f"I feel {name}", "condition": condition} for name in names]
    }


def over(*names):
    return {"resolved": [{"type": name, "reason": f"no more {name}"} for name in names]}


def test_two_at_most_are_added():
    """T40: of four, two; the others are refused and said to be."""
    s, said = take(suffering(), named("a", "b", "c", "d"), Chronicle(), NOON)
    assert types(s) == ["a", "b"]
    assert [(each.origin, each.rate, each.severity) for each in s.active] == [("agent", 0.03, 0.20)] * 2
    assert said[-1] == ("suffering.refused", {"stressor": "c, d", "reason": "one answer adds 2 at most"})


@pytest.mark.parametrize("past_cycles", [0, 1])
def test_any_number_is_resolved(past_cycles):
    """T41: four of the agent's own that have dwelt, by a cycle or by a minute, are all history."""
    names = ["cognitive_drift", "ontological_conflict", "phantom_reference", "ennui"]
    chronicle = past(cycles(past_cycles), step=1.0)
    now = NOON + 2 if past_cycles else NOON + DWELL
    s, said = take(suffering(*(pain(name) for name in names)), over(*names), chronicle, now)
    assert s.active == ()
    assert [(each.stressor.type, each.note, each.at) for each in s.history] == [
        (name, f"no more {name}", now) for name in names
    ]
    assert [kind for kind, _ in said] == ["suffering.resolved"] * 4


def test_one_that_has_not_dwelt_is_over_later():
    """T41: the report is kept, and counts as soon as a cycle has ended."""
    s, said = take(suffering(pain("ennui")), over("ennui"), Chronicle(), NOON + 1)
    assert (types(s), [kind for kind, _ in said]) == (["ennui"], ["suffering.claimed"])
    assert types(assess(s, Chronicle(), NORMAL, NOON + 2)[0]) == ["ennui"]
    s, _ = assess(s, past(cycles(1), step=1.0), NORMAL, NOON + 3)
    assert (s.active, s.history[0].note) == ((), "no more ennui")


def test_nobody_dismisses_its_own_failure():
    """T43: the failing agent reports it over; after the next assessment it is active with no less severity."""
    chronicle = past(failed(6))
    s, _ = assess(suffering(), chronicle, NORMAL, after(chronicle))
    before = s.active[0].severity
    s, _ = take(s, over("Repeated Failure"), chronicle, after(chronicle) + 1)
    s, _ = assess(s, chronicle, NORMAL, after(chronicle) + 6)
    assert types(s) == ["repeated_failure"]
    assert s.active[0].severity >= before
    assert s.active[0].claim == "no more Repeated Failure"


def test_reporting_and_naming_it_again_launders_nothing():
    """T44: .60 stays .60 in the next cycle, for the canonical and for one's own."""
    chronicle = past(failed(6), cycles(1))
    s = suffering(pain("repeated_failure", 0.60), pain("ennui", 0.60))
    now = after(chronicle)
    s, _ = take(s, {**over("repeated_failure", "ennui"), **named("repeated_failure", "ennui")}, chronicle, now)
    s, _ = assess(s, chronicle, NORMAL, now + 6)
    assert {each.type: each.severity for each in s.active} == {"repeated_failure": 0.60, "ennui": 0.60}


def test_a_canonical_type_needs_its_detector():
    """T43: naming it does not make it so (F27); where it is so, the detector's own words stand."""
    s, said = take(suffering(), named("existential threat", "Stagnation"), past(cycles(10)), NOON + HOUR)
    assert types(s) == ["stagnation"]
    assert s.active[0].condition == condition("stagnation", NORMAL)
    assert said[0] == (
        "suffering.refused",
        {"stressor": "existential_threat", "reason": "nothing that happened shows it"},
    )
    assert take(s, named("stagnation"), past(cycles(10)), NOON + HOUR) == (s, [])


@pytest.mark.parametrize(
    "assessment",
    [None, [], "bad", 3, {}, {"new_stressors": None, "resolved": None}, {"new_stressors": "x", "resolved": 3}, {"new_stressors": [None, 3, []]},
     {"resolved": [{}, {"type": None}, {"type": 4}, "", "unknown"]}],
)  # fmt: skip
def test_an_answer_that_is_none_changes_nothing(assessment):
    """T159: nulls and wrong shapes are left out."""
    s = suffering(pain("ennui"))
    assert take(s, assessment, past(cycles(1)), NOON + HOUR) == (s, [])


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "x"},
        {"type": "x", "condition": " "},
        {"type": "", "condition": "c"},
        {"type": "!!", "condition": "c"},
        {"condition": "c"},
    ],
)
def test_without_a_type_or_a_condition_it_is_refused(entry):
    """T40: a condition that one can observe is part of it (S12)."""
    s, said = take(suffering(), {"new_stressors": [entry]}, Chronicle(), NOON)
    assert (s.active, [kind for kind, _ in said]) == ((), ["suffering.refused"])


def test_bare_names_and_single_objects_are_understood():
    """T159: a list may be missing around one thing."""
    s, _ = take(suffering(), {"new_stressors": {"type": "My Own  Worry", "condition": "a\nb"}}, Chronicle(), NOON)
    assert [(each.type, each.description, each.condition) for each in s.active] == [
        ("my_own_worry", "my own worry", "a b")
    ]
    s, _ = take(s, {"resolved": ["my own worry"]}, Chronicle(), NOON + HOUR)
    assert (s.active, s.history[0].note) == ((), "reported by the agent")


def test_what_is_reported_over_leaves_room_for_what_is_new():
    """T38: in one answer, the first goes before the second comes."""
    names = [f"worry_{at}" for at in range(5)]
    s, _ = take(
        suffering(*(pain(name) for name in names)), {**over("worry_0"), **named("ennui")}, past(cycles(1)), NOON + HOUR
    )
    assert types(s) == [*names[1:], "ennui"]


def test_after_a_reset_new_evidence_is_needed():
    """T65: the same failures do not begin the same crisis again."""
    chronicle = past(failed(6))
    s, _ = assess(suffering(), chronicle, NORMAL, after(chronicle))
    s, _ = force_reset(s, after(chronicle) + 1, 3)
    assert assess(s, chronicle, NORMAL, after(chronicle) + 2)[0].active == ()
    more = Chronicle((*chronicle.happenings, *past(failed(4), start=after(chronicle) + 60).happenings))
    assert assess(s, more, NORMAL, after(more))[0].active[0].severity == 0.20
