"""agent.yaml as nodes that keep their line and their text: read with a complaint for each slip, nothing interpreted."""

from __future__ import annotations

from agents.errors import OperatorError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

    import yaml

# A settings file is a page; far beyond that it is an attack on the parser or the wrong file.
_LARGEST_FILE: Final = 64 * 1024
_ONE_A_LINE: Final = "Write one `name: value` a line."
# A list in a mapping is two deep; a few more get a better sentence than this one.
_DEEPEST: Final = 8
_OPENING: Final = frozenset({"MappingStartEvent", "SequenceStartEvent"})
_CLOSING: Final = frozenset({"MappingEndEvent", "SequenceEndEvent"})
_NULL: Final = "tag:yaml.org,2002:null"


def entries(text: str, path: str) -> list[tuple[yaml.Node, yaml.Node]]:
    """Parse *text* into the nodes of its top-level mapping; empty when it holds nothing but comments."""
    if all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines()):
        # The template of `agent init` as it was written must not cost the import of a YAML parser at every command.
        return []
    if len(text) > _LARGEST_FILE:
        raise OperatorError(f"{path} is larger than {_LARGEST_FILE // 1024} KiB.", "Is it the right file?")
    root = _compose(text, path)
    if root is None or root.tag == _NULL:
        return []
    if root.tag != "tag:yaml.org,2002:map":
        raise OperatorError(f"{path} line {line_of(root.start_mark)}: these are not settings.", _ONE_A_LINE)
    found: list[tuple[yaml.Node, yaml.Node]] = root.value
    return found


def _compose(text: str, path: str) -> yaml.Node | None:
    """Return the tree of the only YAML document in *text*, in which no node stands for another."""
    import yaml

    try:
        _check_events(yaml.parse(text, Loader=yaml.SafeLoader), path)
        # Nodes keep their line and their text: "off" stays a word and 010 a number as typed, whatever YAML makes of it.
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        hint = "Indent with spaces, not tabs." if "\\t" in str(error.problem) else _ONE_A_LINE
        where = f"{path} line {line_of(error.problem_mark)}"
        raise OperatorError(f"{where} is not YAML: {error.problem}.", hint) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise OperatorError(f"{path} line {line}: a character that text does not have.", "Save it as UTF-8.") from None


def _check_events(events: Iterable[yaml.Event], path: str) -> None:
    """Refuse what settings never need and a parser suffers from, before the whole text is read.

    Twenty thousand opening brackets keep PyYAML busy for half a minute; anchors and aliases multiply.
    """
    depth = 0
    for event in events:
        where = f"{path} line {line_of(event.start_mark)}"
        depth += (type(event).__name__ in _OPENING) - (type(event).__name__ in _CLOSING)
        if depth > _DEEPEST:
            raise OperatorError(f"{where}: nested too deeply.", _ONE_A_LINE)
        if getattr(event, "anchor", None):
            raise OperatorError(f"{where}: anchors and aliases are not accepted.", "Write the value out.")


def line_of(mark: Any) -> int:
    """Return the line of *mark*, counted from one as editors do."""
    return mark.line + 1 if mark else 1


def scalar(node: yaml.Node, where: str) -> str:
    """Return the text of a scalar *node*; tags of the writer's own are refused with everything else."""
    # What YAML resolves by itself has one of these tags; !!binary, !!python/… and !mine are asked for by name.
    kinds = {"str", "int", "float", "bool", "null", "timestamp", "merge", "value"}
    if not isinstance(node.value, str) or node.tag.removeprefix("tag:yaml.org,2002:") not in kinds:
        raise OperatorError(f"{where}: a plain value belongs here.", _ONE_A_LINE)
    return node.value


def plain(node: yaml.Node, where: str, *, many: bool, pairs: bool = False) -> str | list[str] | None:
    """Return what *node* says as text, or as texts where *many* are welcome; None when it says nothing.

    Where *pairs* are welcome a mapping is as good as a list: ``{a: 1}`` says the same as ``[a=1]``.
    """
    if node.tag == _NULL:
        return None
    if many and node.tag == "tag:yaml.org,2002:seq":
        return [scalar(item, where) for item in node.value]
    if pairs and node.tag == "tag:yaml.org,2002:map":
        return [f"{scalar(key, where)}={scalar(value, where)}" for key, value in node.value]
    return scalar(node, where)
