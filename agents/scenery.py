"""What planning has to know of the world: the repository, this machine, the mind and the program of the engine."""

from __future__ import annotations

import os
import sys

from agents import enclosure, git, journal, lessons, probe, procs, programs
from agents.context import HOME, Context
from agents.plan import Scene

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agents.engines.base import Engine
    from agents.model import RunMeta
    from agents.plan import RunPlan


def look(context: Context, engine: Engine, meta: RunMeta | None = None) -> Scene:
    """Look up everything that planning needs; a resumed run keeps the mind and model of its *meta*."""
    # Before the mind is asked for: a repository without a commit needs no server.
    head = context.head()
    home = journal.state_home(context.environ)
    program = programs.find(engine, context.environ, context.layout.root, home / "agent-box" if home else None)
    if meta is None:
        mind, model = _mind(context, engine)
    else:
        mind, model = meta.mind, meta.model
    return Scene(
        layout=context.layout, head=head, dirty=git.is_dirty(context.repo), now=context.clock.wall(),
        token=context.token(), mind=mind, model=model, isolation=enclosure.offered(context).level, program=program,
        engine_version=program.version if program else getattr(engine, "version", None),
        python=sys.executable, home=HOME, boot_id=procs.boot_id(), host_id=procs.host_id(),
        supervisor=_myself(), clock_offset=context.clock.offset(), rules=_rules(context, engine),
    )  # fmt: skip


def again(context: Context, made: RunPlan) -> Scene:
    """The scene that *made* was planned in, so that the claimed run differs from the dry one by its id alone."""
    meta, state = made.meta, made.state
    return Scene(
        layout=context.layout, head=meta.repo_sha_start, dirty=meta.dirty, now=context.clock.wall(),
        token=context.token(), mind=meta.mind, model=meta.model, engine_version=meta.engine_version,
        isolation=meta.isolation, program=made.program, rules=made.rules,
        python=sys.executable, home=HOME, boot_id=state.boot_id or "", host_id=state.host_id or "",
        supervisor=_myself(), clock_offset=context.clock.offset(),
    )  # fmt: skip


def _rules(context: Context, engine: Engine) -> tuple[str, ...]:
    # Hollow's own agents know what they have learned, and more of it than holds for others.
    return () if engine.name == "hollow" else lessons.rules(context.layout)


def _myself() -> tuple[int, int | None]:
    return os.getpid(), procs.start_of(os.getpid())


def _mind(context: Context, engine: Engine) -> tuple[str | None, str | None]:
    if engine.name != "hollow":
        return None, context.config.model
    wanted, model = context.config.mind, context.config.model or probe.MODEL
    server = None if wanted == "reflex" else probe.ask(probe.url_of(context.environ))
    choice = probe.choose(wanted, model, server)
    context.say(choice.why)
    return choice.mind, choice.model
