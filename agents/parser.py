"""Typer's application: every verb with its help, and the words for a line that is not understood."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

import typer

from agents import quick
from agents.verbs import hollow
from agents.verbs.words import Option, Word

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EPILOG: Final = (
    "Exit codes: 0 done, 2 your request (or you stopped it), 3 the agent, 4 the machine, 5 tampering. "
    "Every command has --help with an example."
)


def spelled(verb: Callable[..., Any]) -> Callable[..., Any]:
    """*verb* with the words of its annotations in Typer's spelling."""
    hints = get_type_hints(verb, localns={"typer": typer}, include_extras=True)
    made = {name: _typers(hint) for name, hint in hints.items()}

    @functools.wraps(verb)
    def called(**values: Any) -> Any:
        return verb(**values)

    # Typer asks both the signature and the annotations, and would look behind the wrapper.
    del called.__wrapped__
    parameters = inspect.signature(verb).parameters.values()
    called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(annotation=made[each.name]) for each in parameters], return_annotation=made["return"]
    )
    called.__annotations__ = made
    return called


def _typers(hint: Any) -> Any:
    word = next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Word)), None)
    if word is None:
        return hint
    make = typer.Option if isinstance(word, Option) else typer.Argument
    return Annotated[hint.__origin__, make(*word.names, min=word.least, max=word.most, **word.more)]


class Group(typer.Typer):
    """An application, or a group of verbs in it, that reads the words of :mod:`agents.verbs.words`."""

    def __init__(self, name: str, text: str, **more: Any) -> None:
        # Markup off: help is read in pipes too, and rich would cost a third of the start-up.
        super().__init__(name=name, help=text, rich_markup_mode=None, add_completion=False, **more)

    def add(self, name: str, verb: Callable[..., Any]) -> None:
        """Add *verb* under *name*."""
        self.command(name=name)(spelled(verb))


def _root() -> None:
    """Put coding agents to work on a git repository without watching or trusting them."""


def _build() -> typer.Typer:
    app = Group(
        "agent", "Put coding agents to work on a git repository without watching or trusting them.", epilog=EPILOG,
        no_args_is_help=True, pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip
    app.callback()(_root)
    for module in quick.MODULES:
        for name, verb in quick.verbs(module).items():
            app.add(name, verb)
    queue = Group("requests", hollow.REQUESTS, invoke_without_command=True)
    queue.callback()(spelled(hollow.requests))
    memory = Group("hollow", hollow.MEMORY, no_args_is_help=True)
    _add_group(app, queue, hollow.QUEUE)
    _add_group(app, memory, hollow.KEEPING)
    return app


def _add_group(app: Group, group: Group, offered: Mapping[str, Any]) -> None:
    for name, verb in offered.items():
        group.add(name, verb)
    app.add_typer(group)


app: Final = _build()
