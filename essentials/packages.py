"""The packages of others, made known when the first of them is needed: most verbs need none, and pay for none."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # As `typing` has it; this module is loaded by every verb.
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_NOT_THERE = sys.stdlib_module_names | {"agents", "essentials", "hollow"}
"""What no site folder is asked for: modules of other systems, which the standard library tries, and our own."""


class _AtNeed:
    """The last finder: it is asked for what is in no folder known so far, and looks into the site folders."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where the module *name* is, as the import system asks."""
        if name.partition(".")[0] in _NOT_THERE:
            return None
        complete()
        specs = (finder.find_spec(name, path, target) for finder in tuple(sys.meta_path))
        return next(filter(None, specs), None)


def defer() -> None:
    """Have the site folders of a Python that was started without them looked into at the first import that needs it.

    Doing it at once costs as much as an empty Python: every ``.pth`` file of the environment is read and obeyed.
    """
    if sys.flags.no_site:
        sys.meta_path.append(_AtNeed)


def complete() -> None:
    """Look into the site folders now, for who asks what is installed; a second time it does nothing."""
    if _AtNeed in sys.meta_path:
        sys.meta_path.remove(_AtNeed)
        import site

        site.main()
