"""JSON for who reads little of it: the scanner of :mod:`json` without that module, whose import is most of `status`."""

from __future__ import annotations

TYPE_CHECKING = False  # As `typing` has it; `status` loads this module.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Usual:
    """What the scanner asks: the answers of ``json.loads`` without any option."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _scanner() -> Callable[[str, int], tuple[Any, int]] | None:
    try:
        import _json

        usual: Any = _Usual
        made: Callable[[str, int], tuple[Any, int]] = _json.make_scanner(usual)
    except (ImportError, AttributeError):
        # A Python that has none, or one that asks more.
        return None
    return made


_SCAN = _scanner()


def loads(data: bytes) -> Any:
    """What ``json.loads(data)`` returns or raises; it is asked about all that is not plainly right."""
    if _SCAN:
        try:
            text = data.decode("utf-8", "surrogatepass").strip(" \t\n\r")
            value, end = _SCAN(text, 0)
            if end == len(text):
                return value
        except (ValueError, StopIteration):
            pass
    import json

    return json.loads(data)
