"""What a run has used altogether, and whether that is more than it may."""

from __future__ import annotations

from agents.tally import LARGEST, TOKENS, Spend, Tally, counts, is_count, largest, summed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from agents.events import Progress
    from agents.timers import Limits

__all__ = ["TOKENS", "Spend", "Tally", "add", "counts", "spent", "tokens", "usage"]


def usage(progress: Progress) -> dict[str, Any]:
    """What the run has used, as state and ledger keep it: tokens by kind, ``turns``, ``cost_usd``; only what is known.

    The result's own numbers are final, since those of messages are told before they are complete; but what was heard
    after a result, or in attempts before it, is in the tally alone. Of both the larger is nearer to the truth.
    """
    result = progress.result
    told = result.usage if result else {}
    used: dict[str, Any] = largest(progress.tally.tokens(), counts(dict(told)))
    turns = max(progress.tally.turns, (result.turns or 0) if result else 0)
    if turns or (result and result.turns is not None):
        used["turns"] = turns
    if _is_cost(told.get("cost_usd")):
        used["cost_usd"] = told["cost_usd"]
    return used


def _is_cost(value: object) -> bool:
    # The bound also keeps infinity and what is no number out.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < LARGEST


def add(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """The usage of two attempts together; what is no count in *before*, as an older version left it, is dropped."""
    total: dict[str, Any] = summed(counts(dict(before)), counts(dict(more)))
    for name, fits in (("turns", is_count), ("cost_usd", _is_cost)):
        known = [each[name] for each in (before, more) if fits(each.get(name))]
        if known:
            total[name] = sum(known)
    return total


def tokens(used: Mapping[str, Any]) -> int:
    """All tokens of the usage *used*: read and written, cached ones as well."""
    return sum(counts(dict(used)).values())


def spent(limits: Limits, progress: Progress) -> str | None:
    """The sentence that says which budget of *limits* was overstepped, None while none was (design, section 5).

    A budget may be used up to its last turn, token or cent; it is over with the first one beyond.
    """
    return next(_overstepped(limits, usage(progress)), None)


def _overstepped(limits: Limits, used: Mapping[str, Any]) -> Iterator[str]:
    if limits.max_turns is not None and used.get("turns", 0) > limits.max_turns:
        yield f"Its budget of {limits.max_turns} turns is spent."
    if limits.max_tokens is not None and tokens(used) > limits.max_tokens:
        yield f"Its budget of {limits.max_tokens} tokens is spent: it used {tokens(used)}."
    if limits.max_usd is not None and used.get("cost_usd", 0) > limits.max_usd:
        yield f"Its budget of ${limits.max_usd:g} is spent: it used ${used['cost_usd']:.2f}."
