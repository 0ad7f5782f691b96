"""meta.yaml as text: YAML that is written, and mostly read, without a YAML parser; bytes in, mapping out.

One ``key: value`` a line with the value as JSON, which is YAML too. What other versions or other hands wrote is read by
PyYAML, whose import costs more than everything else that a verb does with the file.
"""

from __future__ import annotations

import json

from agents.errors import Tampered
from essentials.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Final

_KEY: Final = late(r"[a-z][a-z0-9_]*")
# YAML knows words that look like these and mean something else to it; none is a key of ours.
_ODD_KEYS: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
# Characters that JSON may hold as they are and YAML may not, or takes for the end of a line.
_UNPRINTABLE: Final = late("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_HINT: Final = "Type: ./agent verify"


def dump(values: Mapping[str, Any]) -> bytes:
    """The bytes of meta.yaml for *values* of plain JSON types; the keys are lower-case words."""
    lines = (f"{key}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}\n" for key, value in values.items())
    text = _UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", "".join(lines))
    # Surrogates stand for bytes of the command line that are no UTF-8; a replaced character keeps the file readable.
    return text.encode("utf-8", "replace")


def load(data: bytes, name: str) -> dict[str, Any]:
    """What the meta.yaml of the run *name* holds; raises Tampered where *data* is not the text of one mapping."""
    found = _own(data)
    return _by_parser(data, name) if found is None else found


def _own(data: bytes) -> dict[str, Any] | None:
    """The mapping in *data* as :func:`dump` writes it, or None where any line is unlike that."""
    values: dict[str, Any] = {}
    try:
        for line in data.decode().splitlines():
            key, colon, value = line.partition(": ")
            if not colon or not _KEY.fullmatch(key) or key in _ODD_KEYS or key in values:
                return None
            values[key] = json.loads(value, parse_constant=_refuse, parse_float=_refuse)
    except (ValueError, RecursionError):
        return None
    return values or None


def _refuse(word: str) -> Any:
    """Neither NaN nor a fraction stands in such a file; YAML reads some of them differently."""
    raise ValueError(word)


def _by_parser(data: bytes, name: str) -> dict[str, Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_depth(type(event).__name__ for event in yaml.parse(data, Loader=loader))
        raw = yaml.load(data, Loader=loader)  # noqa: S506 - both are safe
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as why:
        raise Tampered(f"meta.yaml of {name} is not readable.", _HINT) from why
    if not isinstance(raw, dict):
        raise Tampered(f"meta.yaml of {name} is not a mapping.", _HINT)
    return raw


def _check_depth(events: Iterable[str]) -> None:
    """Raise ValueError where the *events* of a document nest deeper than any envelope; libyaml dies of it."""
    depth = 0
    for event in events:
        depth += event.endswith("StartEvent") - event.endswith("EndEvent")
        if depth > _DEEPEST:
            raise ValueError("nested too deep")


# The stream and the document count too.
_DEEPEST: Final = 16
