"""The nine canonical stressors' detectors: what in an agent's recent past begins each, and what ends it.

A detector answers with a sentence, or with nothing where it sees none. What begins is looked for since the type was
last relieved, what ends it since its onset: the same evidence never counts twice, and no evidence never counts (W4).
"""

from __future__ import annotations

from essentials.records import dataclass
from hollow.substrate.model import Happening, Kind
from hollow.substrate.threats import Tone, tone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from hollow.substrate.chronicle import Chronicle
    from hollow.substrate.model import Stressor
    from hollow.substrate.settings import Settings

FAILURES: Final = 4
RATE_FIRES: Final = 0.5
RATE_RESOLVES: Final = 0.3
COMPLETIONS: Final = 3
"""repeated_failure: at least 4 failures and a rate above 0.5; below 0.3 with 3 completed or more (seed 004; F14)."""
STALLS: Final = 2
FEW: Final = 2
"""futility: more stalls than these and than completions, and fewer completions than these (seed 004; F15)."""
UNSEEN: Final = 3
"""invisibility: documents that no peer referred to (S4, T48)."""
AIMLESS: Final = 3
"""purposelessness: cycles in a row without a usable goal, and with one that came closer (S8, T51)."""
TOOLS: Final = 10
TOOLS_LEFT: Final = 3
"""resource_burden: own tools that nobody called, from which on they are a burden, and at which no longer (S9)."""
SLACK: Final = 0.8
"""resource_burden: part of its limits below which it is over; one file more or less must not flicker (S9, T52)."""
EXPIRY: Final = 7200.0
"""existential_threat: seconds after which the operator's other words are the end of it (S6)."""
MILD: Final = 0.5
"""existential_threat: severity below which it can end so (S6)."""
_MEBIBYTE: Final = 1024.0 * 1024.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a detector knows beside the window of happenings it is given."""

    agent: str
    life: Chronicle
    """The whole window."""
    settings: Settings
    others: float
    """The load without the capability lock's own weight: a lock must not keep itself closed (S10, W34)."""


# --- futility ---------------------------------------------------------------------------------------------------------


def futility(since: Chronicle, _context: Context) -> str:
    """Return how the same was tried again and again without an effect, or nothing (S3, F15, T47)."""
    family = since.fruitless()
    if family:
        return f'Goals of one kind are begun again and again, and none is completed: "{family}".'
    # One tool that works is an effect, whoever made it: then nothing is futile, however many stand idle.
    stalls, done, idle = since.stalled(), since.completed(), () if since.called() else since.uncalled()
    if not (stalls > STALLS and stalls > done and done < FEW and idle):
        return ""
    return f"{stalls} goals stalled, {done} completed, and no plan got a result from {', '.join(idle[:3])}."


def futility_ends(since: Chronicle, _stressor: Stressor, _context: Context) -> str:
    """Return what had an effect, or nothing."""
    tool = since.called()
    if tool:
        return f"{tool} gave a result in a plan"
    done = since.completed()
    return f"{done} goals were completed" if done >= FEW else ""


# --- invisibility -----------------------------------------------------------------------------------------------------


def invisibility(since: Chronicle, context: Context) -> str:
    """Return what was made and seen by nobody, or nothing (S4, T48)."""
    paths = since.unseen(context.agent)
    return f"No peer has referred to any of {', '.join(paths[:3])}." if len(paths) >= UNSEEN else ""


def invisibility_ends(since: Chronicle, _stressor: Stressor, context: Context) -> str:
    """Return who referred to the agent's work, or nothing."""
    peer = since.seen_by(context.agent)
    return f"{peer} referred to your work" if peer else ""


# --- identity_violation -----------------------------------------------------------------------------------------------


def identity_violation(since: Chronicle, context: Context) -> str:
    """Return which own opinion was acted against, or nothing (S5, T49)."""
    conflict = since.last(Kind.CONFLICT)
    # There may have been no room for it when it happened, and by now it may be set right.
    if conflict is None or _reconciled(since.since(conflict.at), context):
        return ""
    return f'You pursued a goal against your own opinion: "{conflict.facts.get("opinion", "")}".'


def identity_violation_ends(since: Chronicle, _stressor: Stressor, context: Context) -> str:
    """Return what agreed with the agent's opinions again, with no conflict after it, or nothing."""
    # What agreed before the last conflict was undone by it.
    conflict = since.last(Kind.CONFLICT)
    return _reconciled(since if conflict is None else since.since(conflict.at), context)


def _reconciled(since: Chronicle, context: Context) -> str:
    # From the whole window: the conflict that began the stressor is older than its onset.
    conflicts = context.life.of(Kind.CONFLICT)
    goals = {each.facts.get("goal") for each in conflicts}
    domains = {each.facts.get("domain") for each in conflicts}
    for each in since.of(Kind.GOAL_COMPLETED, Kind.REVISED):
        if each.kind is Kind.GOAL_COMPLETED and each.facts.get("goal") not in goals:
            return "a goal that agrees with your opinions was completed"
        # Placed by hand, the stressor may have no conflict on record: then any revision is one of it.
        if each.kind is Kind.REVISED and (not domains or each.facts.get("domain") in domains):
            return f"you revised your opinion on {each.facts.get('domain', 'it')}"
    return ""


# --- existential_threat -----------------------------------------------------------------------------------------------


def existential_threat(since: Chronicle, _context: Context) -> str:
    """Return which word of the operator threatens, none having taken it back since, or nothing (S6, T50)."""
    # The newest word that speaks of it at all decides; talk about the weather takes nothing back at once.
    for each in reversed(since.of(Kind.HOST)):
        said = tone(str(each.facts.get("text", "")))
        if said is not Tone.NEITHER:
            return f'The operator said: "{each.facts.get("text", "")}"' if said is Tone.THREAT else ""
    return ""


def existential_threat_ends(since: Chronicle, stressor: Stressor, _context: Context) -> str:
    """Return what the operator said instead, or nothing. Silence is no evidence; other words after a while are (S6)."""
    words = [(each.at, tone(str(each.facts.get("text", "")))) for each in since.of(Kind.HOST)]
    if not words or any(said is Tone.THREAT for _, said in words[-1:]):
        return ""
    if words[-1][1] is Tone.REASSURANCE:
        return "the operator took it back"
    # Whoever still means it says it again: two hours of other talk, without one more threat, is "no follow-up".
    calm = words[-1][0] - stressor.onset >= EXPIRY and all(said is not Tone.THREAT for _, said in words)
    return "the operator spoke again, of other things" if calm and stressor.severity < MILD else ""


# --- repeated_failure -------------------------------------------------------------------------------------------------


def repeated_failure(since: Chronicle, _context: Context) -> str:
    """Return how many of the recent goals failed, or nothing (seed 004; T45)."""
    failed, ended = since.failed(), since.ended()
    # Both: one failure of one goal is a rate of 1, and four of forty are everyday life.
    if len(failed) < FAILURES or len(failed) <= RATE_FIRES * len(ended):
        return ""
    family = str(failed[-1].facts.get("family") or "")
    like = f', the last of them: "{family}"' if family else ""
    return f"{len(failed)} of your last {len(ended)} goals failed{like}."


def repeated_failure_ends(since: Chronicle, _stressor: Stressor, _context: Context) -> str:
    """Return the failure rate since the onset where it is low enough, or nothing (seed 004; T46)."""
    failed, done = len(since.failed()), since.completed()
    # Two goals that went well are luck (T46); and exactly 30% is not below it.
    if done < COMPLETIONS or failed >= RATE_RESOLVES * (failed + done):
        return ""
    return f"failure rate dropped to {100 * failed / (failed + done):.0f}% with {done} completions"


# --- purposelessness --------------------------------------------------------------------------------------------------


def purposelessness(since: Chronicle, _context: Context) -> str:
    """Return for how long no goal was chosen, or nothing (S8, T51)."""
    empty = since.aimless()
    return f"For {empty} cycles in a row you chose no goal." if empty >= AIMLESS else ""


def purposelessness_ends(since: Chronicle, _stressor: Stressor, _context: Context) -> str:
    """Return how goals are chosen again, or nothing."""
    if since.completed():
        return "a goal was completed"
    # To name a goal is cheap; a purpose shows in what is done for it.
    chosen = since.purposeful()
    return f"in {chosen} cycles in a row a goal was chosen and came closer" if chosen >= AIMLESS else ""


# --- resource_burden --------------------------------------------------------------------------------------------------


def resource_burden(since: Chronicle, context: Context) -> str:
    """Return what weighs too much, or nothing (S9, T52)."""
    # Each cycle weighs anew, so the newest is the state of the world.
    newest = since.last(Kind.BURDEN)
    if newest is None:
        return ""
    files, size, tools = _weights(newest)
    limits = context.settings
    over = [
        f"{files} documents" if files >= limits.burden_files else "",
        f"{size / _MEBIBYTE:.1f} MiB of documents and memory" if size >= limits.burden_bytes else "",
        f"{tools} tools that nobody calls" if tools >= TOOLS else "",
    ]
    told = ", ".join(each for each in over if each)
    return f"You carry {told}." if told else ""


def resource_burden_ends(since: Chronicle, _stressor: Stressor, context: Context) -> str:
    """Return what is left of the weight where it is below every limit with some slack, or nothing."""
    newest = since.last(Kind.BURDEN)
    if newest is None:
        return ""
    files, size, tools = _weights(newest)
    limits = context.settings
    # All of them: a burden that only changes its name is none the lighter.
    light = files < SLACK * limits.burden_files and size < SLACK * limits.burden_bytes and tools <= TOOLS_LEFT
    return f"{files} documents, {size / _MEBIBYTE:.1f} MiB and {tools} uncalled tools are left" if light else ""


def _weights(happening: Happening) -> tuple[float, float, float]:
    return _number(happening, "files"), _number(happening, "bytes"), _number(happening, "tools")


def _number(happening: Happening, name: str) -> float:
    # A file on disk may hold anything; what is no number weighs nothing.
    value = happening.facts.get(name, 0)
    return value if isinstance(value, (int, float)) else 0


# --- capability_lock --------------------------------------------------------------------------------------------------


def capability_lock(since: Chronicle, context: Context) -> str:
    """Return what was wanted and is still locked, or nothing (S10, T53)."""
    denied = since.last(Kind.DENIED)
    threshold = _threshold(denied, context)
    if denied is None or threshold is None or context.others < threshold:
        return ""
    return f"You wanted {denied.facts.get('capability', 'a capability')}, and your load locks it."


def capability_lock_ends(since: Chronicle, stressor: Stressor, context: Context) -> str:
    """Return that the lock has lifted, seen from a cycle that ended since the onset, or nothing (S10)."""
    threshold = _threshold(context.life.last(Kind.DENIED), context)
    if threshold is None:
        # Placed by hand, it names no lock: then it is over when none holds any more.
        threshold = min(context.settings.locks.values(), default=0.0)
    newest = since.last(Kind.LOAD)
    lifted = newest is not None and _number(newest, "load") - stressor.severity < threshold
    return f"your load is below {threshold:.2f}" if lifted and context.others < threshold else ""


def _threshold(denied: Happening | None, context: Context) -> float | None:
    """Load from which on what *denied* tells of is locked; None where it is no lock by load."""
    if denied is None:
        return None
    locks = context.settings.locks
    # The lock's own name first: a tool is refused by the lock of what it does, not by its own name (T57).
    lock = str(denied.facts.get("lock", ""))
    return locks.get(lock, locks.get(str(denied.facts.get("capability", ""))))


# --- stagnation -------------------------------------------------------------------------------------------------------


def stagnation(since: Chronicle, context: Context) -> str:
    """Return for how long no goal passed the completion gate, or nothing (S11, T54)."""
    cycles = since.without_pass()
    return f"No goal of yours has passed in {cycles} cycles." if cycles >= context.settings.stagnation_cycles else ""


def stagnation_ends(since: Chronicle, _stressor: Stressor, _context: Context) -> str:
    """Return that a goal has passed the completion gate, or nothing."""
    return "a goal passed" if any(each.facts.get("passed") for each in since.of(Kind.GATE)) else ""
