"""Verbs that keep the house: gc, verify, doctor, init, demo."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import MappingProxyType

from agents import config, files
from agents.config import Config
from agents.context import prepare
from agents.errors import HostError, OperatorError, Tampered
from agents.units import parse_duration
from agents.verbs import options
from agents.verbs.words import Annotated, Argument, Option
from essentials import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from agents.context import Context

KeepFor = Annotated[str | None, Option(help="Keep finished boxes for this long, like 30d.")]
KeepRuns = Annotated[int | None, Option(help="Keep this many of the newest boxes.", min=0)]
Accept = Annotated[bool, Option("--accept", help="Take today's ledger for the true one.")]
Only = Annotated[str, Argument(help="One run; without it the whole ledger.")]

_MARKS = {"ok": "✓", "warn": "!", "fail": "✗"}


def gc(
    keep_for: KeepFor = None, keep_runs: KeepRuns = None, dry_run: options.DryRun = False, json_: options.Json = False
) -> int:
    """Remove the airlocks of finished runs, and boxes that are finished and old; no box goes without a limit.

    Example: ./agent gc --keep-for 30d
    """
    from agents import collect

    context = options.swept()
    closed = [name for name in collect.airlocks(context) if dry_run or collect.close(context, name)]
    gone = _old(context, keep_for, keep_runs, needless=bool(closed))
    gone = [name for name in gone if dry_run or collect.remove(context, name)]
    if gone and not dry_run:
        collect.keep(context)
    if json_:
        options.show(json.dumps({"removed": gone, "airlocks": closed, "dry_run": dry_run}))
    else:
        went = "would go" if dry_run else "removed"
        options.show("\n".join([*gone, f"{len(gone)} boxes and {len(closed)} airlocks {went}."]))
    return 0


def _old(context: Context, keep_for: str | None, keep_runs: int | None, *, needless: bool) -> list[str]:
    """Boxes that the limits let go; raises OperatorError without any limit unless it is *needless*."""
    from agents import collect

    age = parse_duration(keep_for) if keep_for is not None else context.config.keep_for
    count = keep_runs if keep_runs is not None else context.config.keep_runs
    if age is None and count is None and not needless:
        raise OperatorError("Nothing says how long boxes are kept.", "Type: ./agent gc --keep-for 30d (or --keep-runs)")
    return collect.candidates(context, age, count)


def verify(only: Only = "", accept_: Accept = False, json_: options.Json = False) -> int:
    """Check that the ledger and every sealed file are what was written.

    Example: ./agent verify
    """
    from agents import accept, audit, redact

    context = options.swept()
    if accept_:
        options.show(f"Accepted what is there now; {accept.accept(context)} things did not hold before.")
        return 0
    found = audit.audit(context, context.store.resolve(only) if only else None)
    if json_:
        options.show(json.dumps(records.asdict(found), indent=1))
        return Tampered.code if found.flaws else 0
    for flaw in found.flaws:
        options.show(f"{flaw.kind}: {redact.visible(flaw.message)}")
    if found.more:
        options.show(f"… and {found.more} more.")
    if found.torn:
        options.show(f"The last line is torn ({found.torn} bytes); the next entry sets it aside.")
    if found.flaws:
        hint = "If you changed it yourself, type: ./agent verify --accept"
        raise Tampered(f"{len(found.flaws) + found.more} of {found.entries} entries or their seals do not hold.", hint)
    options.show(f"{found.entries} entries and the sealed files of {found.runs} runs are what was written.")
    return 0


def doctor_(json_: options.Json = False) -> int:
    """Check what this machine has for the box, and say what to type for what it lacks.

    Example: ./agent doctor
    """
    from agents import doctor, redact

    try:
        context = options.here()
        root, settings = context.repo.root, context.config
    except OperatorError as why:
        # A doctor must also work where nothing else does.
        options.show(f"! {why.message}  {why.hint}", err=True)
        root, settings = Path.cwd(), Config()
    checks = list(doctor.examine(root, settings, os.environ))
    if json_:
        options.show(json.dumps([records.asdict(check) for check in checks], indent=1))
    else:
        for check in checks:
            options.show(f"{_MARKS[check.state]} {check.name:12} {redact.visible(check.found)}")
            options.show(f"               → {check.remedy}") if check.remedy else None
    if any(check.state == "fail" for check in checks):
        raise HostError("Something is missing that the box cannot do without.", "See the lines marked ✗.")
    return 0


def init() -> int:
    """Write a commented agent.yaml and make the data folder; both are optional.

    Example: ./agent init
    """
    context = options.here()
    prepare(context)
    path = context.layout.root / "agent.yaml"
    with files.reported("write agent.yaml"):
        made = files.create(path, config.TEMPLATE.encode(), aside=context.layout.ledger)
        path.chmod(0o644) if made else None
    options.show(
        "agent.yaml written: every setting with its default, commented out." if made else "agent.yaml is there."
    )
    options.show('Now: ./agent scout "how does this work?"')
    return 0


def demo_() -> int:
    """Play a recorded run in a throw-away repository and show what it leaves.

    Example: ./agent demo
    """
    from agents import demo, redact

    for line in demo.play({}, os.environ):
        options.show(redact.visible(line, newlines=True))
    return 0


VERBS: Final = MappingProxyType({"gc": gc, "verify": verify, "init": init, "doctor": doctor_, "demo": demo_})
"""What is typed for each."""
