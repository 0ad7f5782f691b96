"""How a verb says what it takes: options and arguments in its annotations, without the library that parses them."""

from __future__ import annotations

# The name alone tells type checkers; the verbs are imported at every command, where `typing` is felt.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Any
else:

    class Annotated:
        """As `typing` has it, but without the check of what stands in it, which a type checker makes."""

        __slots__ = ("__metadata__", "__origin__")

        def __class_getitem__(cls, said: tuple[Any, ...]) -> Annotated:
            """``Annotated[KIND, WORD]``."""
            made = cls()
            made.__origin__, *made.__metadata__ = said
            return made


__all__ = ["Annotated", "Argument", "Option", "Word"]


class Word:
    """An option or argument of a verb; stands in ``Annotated`` beside the type of its value."""

    __slots__ = ("least", "more", "most", "names")

    def __init__(self, *names: str, min: int | None = None, max: int | None = None, **more: Any) -> None:  # noqa: A002 - as Typer calls them
        """*names* as they are typed; *min* and *max* bound a number; *more* is handed on to Typer (help, metavar)."""
        self.names = names
        self.least = min
        self.most = max
        self.more = more


class Option(Word):
    """Something that begins with a dash: a flag where its type is bool, else with a value."""

    __slots__ = ()


class Argument(Word):
    """Something that stands by itself."""

    __slots__ = ()
