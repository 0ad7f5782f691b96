"""`agent verify --accept`: the operator says that what is there now is the truth; the ledger says that he said so."""

from __future__ import annotations

from agents import audit, plan, settle
from agents.errors import BoxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agents.context import Context


def accept(context: Context) -> int:
    """Take ledger and boxes as they are for the true ones; returns how many things that did not hold were accepted.

    Nothing is thrown away: a broken chain is set aside whole, its sound beginning goes on. A run whose evidence was
    changed is sealed anew under an entry of its own (``run.accepted``), one whose box is gone counts as collected.
    """
    context.store.prepare()
    dropped = context.journal.mend()
    unsound = sorted({flaw.run for flaw in audit.audit(context, most=None).flaws if flaw.run})
    for run in unsound:
        _accept_run(context, run)
    context.journal.accept()
    return dropped + len(unsound)


def _accept_run(context: Context, run: str) -> None:
    box = context.store.box(run)
    try:
        meta, state = context.store.meta(run), context.store.load(run)
    except BoxError:
        # Without a readable state there is no run any more, only a folder that somebody may look at.
        context.journal.append("run.collected", run, {"status": "COLLECTED"})
        return
    sealed = {"evidence": settle.seal(box), "meta_sha256": settle.hash_file(box, "meta.yaml")}
    context.journal.append("run.accepted", run, {**plan.facts(meta, state), **sealed})
