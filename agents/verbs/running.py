"""What the verbs that make runs do: ask, start, show, exit. Imports all that a run needs, so only runs import it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from agents import control, core, enclosure, interrupts, launch, plan, redact, views
from agents.engines import registry
from agents.errors import OperatorError
from agents.model import HOST_FAILURES, Status
from agents.plan import Ask
from agents.verbs import options
from essentials import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from agents.context import Context
    from agents.core import Outcome

# Said with every run that has less than the full wall around it (design, section 8): whether its own tools hold it.
_UNWALLED = {
    True: "no sandbox; its own tools stay inside their folder, what they run has your rights",
    False: "no sandbox; it runs with your rights, and a change to this repository fails the run afterwards",
}


def team(ask: Ask, flags: dict[str, Any], count: int, engines: str | None, *, json_: bool) -> int:
    """Have several agents try *ask* side by side, and show how they compare; returns the exit code."""
    from agents import team as together

    context = options.here(**flags)
    if json_:
        context = records.replace(context, say=lambda _: None)
    names = together.engines_of(count, engines, context.config.engine)

    def claimed(name: str) -> None:
        """Say where the box is."""
        control.report_claim(name)
        context.say(f"{len(names)} agents · box .agents/runs/{name}")

    words = _words({name: value for name, value in flags.items() if name != "engine"})
    return _show(context, together.start(context, ask, names, words, claimed), json_=json_)


def _words(flags: dict[str, Any]) -> list[str]:
    """*flags* as words of a command line."""
    return [word for name, value in flags.items() if value for word in (f"--{name.replace('_', '-')}", str(value))]


def asked(run_type: str, task: str, program: list[str] | None, argv: list[str]) -> Ask:
    """What the operator asks for; raises OperatorError for a task that lost its quotes (*argv* is the whole line)."""
    if program and "--" not in argv:
        raise OperatorError("The task is more than one word without quotes.", 'Type: ./agent scout "why is it slow?"')
    return Ask(run_type=run_type, task=_task(task), argv=_located(program or []), team=_team())


def _located(program: list[str]) -> tuple[str, ...]:
    """*program* with its first word as it is found from an agent's folder: a path was typed from the operator's own.

    In a repository it stays relative, to its root: in an airlock the agent's own copy is meant.
    """
    if not program or "/" not in program[0] or program[0].startswith("/"):
        return tuple(program)
    here = Path.cwd()
    path = Path(os.path.normpath(here / program[0]))
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)
    if not path.is_file() or root is None:
        return tuple(program)
    word = f"./{path.relative_to(root)}" if path.is_relative_to(root) else str(path)
    return (word, *program[1:])


def _team() -> str | None:
    """The run of several agents that this one is a part of; its supervisor is not outlived."""
    name, _, parent = os.environ.pop("AGENT_BOX_TEAM", "").partition(" ")
    if not name:
        return None
    interrupts.end_with_parent()
    if str(os.getppid()) != parent:
        raise OperatorError("The run of several agents that this one belongs to is over.", "Type: ./agent status")
    return name


def _task(given: str) -> str:
    return sys.stdin.buffer.read(plan.TASK_LIMIT + 1).decode("utf-8", "surrogateescape") if given == "-" else given


def start(ask: Ask, flags: dict[str, Any], *, json_: bool, claimed: Callable[[str], None] | None = None) -> int:
    """Run *ask* to its end and show it; returns the exit code. *claimed* is told the run's name when it has a box."""
    context = options.here(**flags)
    if json_:
        context = records.replace(context, say=lambda _: None)

    def announced(name: str) -> None:
        """Say where the box is, and how well it is walled in."""
        control.report_claim(name)
        if claimed:
            claimed(name)
        context.say(f"{ask.run_type} {name.rpartition('__')[2]} · box .agents/runs/{name}")
        _say_isolation(context, context.store.load(name).isolation)

    return _show(context, core.start(context, ask, claimed=announced), json_=json_)


def _say_isolation(context: Context, level: str) -> None:
    """Say loudly what is missing of the wall around the agent, and what to type for it (design, section 8)."""
    if level == "full":
        return
    offer = enclosure.offered(context)
    confined = registry.engine(context.config.engine).confined
    what = _UNWALLED[confined] if level == "none" else "it cannot write outside, but may see more than it needs"
    context.say(f"isolation {level}: {what}")
    if offer.why:
        context.say(f"  {offer.why}" + (f" ({offer.hint})" if offer.hint else ""))


def _show(context: Context, outcome: Outcome, *, json_: bool) -> int:
    box = context.store.box(outcome.meta.run_name)
    if json_:
        options.show(core.as_json(outcome, context))
    else:
        options.show(options.report(box))
        facts = plan.facts(outcome.meta, outcome.state)
        options.show(views.outcome(facts, f".agents/runs/{box.name}"), err=True)
        options.show(f"  report {_report(outcome)}", err=True)
    return exit_code(outcome)


def _report(outcome: Outcome) -> str:
    return ".agents/latest/" + ("plan.md" if outcome.meta.run_type == "plan" else "report.md")


def exit_code(outcome: Outcome) -> int:
    """Exit code of a run: 0 done, 2 stopped by its operator, 3 the agent's fault, 4 the machine's."""
    state = outcome.state
    if state.status in {Status.DONE, Status.REVIEW}:
        return 0
    if state.status is Status.STOPPED:
        return 2
    return 4 if state.failure and state.failure.kind in HOST_FAILURES else 3


def dry_run(ask: Ask, flags: dict[str, Any], count: int = 1, engines: str | None = None, *, json_: bool) -> int:
    """Print what *ask* would become, of *count* agents what each would; nothing is touched."""
    context = options.here(**flags)
    if count > 1 or engines:
        from agents import team as together

        names = together.engines_of(count, engines, context.config.engine)
        shown: dict[str, Any] = {"agents": [_described(together.with_engine(context, name), ask) for name in names]}
    else:
        shown = _described(context, ask)
    if json_:
        options.show(json.dumps(shown, indent=1))
        return 0
    import yaml

    options.show(redact.visible(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True), newlines=True))
    options.show("Nothing was touched.", err=True)
    return 0


def _described(context: Context, ask: Ask) -> dict[str, Any]:
    made, _ = core.decide(context, ask)
    return plan.describe(made, sorted(launch.agent_environment(context, made, context.store.box(made.meta.run_name))))


def detach(
    ask: Ask,
    flags: dict[str, Any],
    count: int = 1,
    engines: str | None = None,
    *,
    json_: bool,
    claimed: Callable[[str], None] | None = None,
) -> int:
    """Start *ask* under a supervisor of its own and print its run's name, of which *claimed* is told too."""
    try:
        # The task goes by standard input: a command line is too short for some, and seen by everybody.
        task = ask.task.encode("utf-8", "surrogateescape")
        several = _words({"agents": count if count > 1 else None, "engines": engines})
        name = control.detach([ask.run_type, *several, *_words(flags), "--", "-", *ask.argv], task)
    except control.Refused as why:
        options.show(why.words.rstrip(), err=True)
        return why.code
    if claimed:
        claimed(name)
    short_id = name.rpartition("__")[2]
    options.show(json.dumps({"run": name, "id": short_id}) if json_ else name)
    options.show(f"  follow: ./agent logs -f {short_id}   stop: ./agent stop {short_id}", err=True)
    return 0


def resume(target: str, message: str, flags: dict[str, Any], *, fresh: bool, json_: bool) -> int:
    """Go on with the run *target* and show how it ended; returns the exit code."""
    context = options.here(**flags)
    return _show(context, core.resume(context, target, message, fresh=fresh), json_=json_)
