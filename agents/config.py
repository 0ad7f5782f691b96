"""Settings: one value each, from flag, environment, agent.yaml or default, and a sentence for what does not fit."""

from __future__ import annotations

import difflib
import re
import reprlib
from collections import ChainMap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from agents.errors import OperatorError
from agents.units import Written, parse_duration, parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import yaml

OnStall = Literal["reap", "mark"]
MindName = Literal["auto", "ollama", "reflex"]
Sandbox = Literal["full", "partial", "none", "auto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Every setting of Agent Box, valid and in its own unit (issue 2, part 9)."""

    stall_after: float = 300.0
    """Seconds of silence before the result after which a run counts as STALLED (seed 003, phase 3; T141)."""
    linger: float = 60.0
    """Seconds an agent may live on after its result."""
    grace: float = 10.0
    """Seconds between asking a process tree to end and killing it."""
    timeout: float | None = None
    """Seconds a run may take altogether; None for no limit."""
    on_stall: OnStall = "reap"
    """What happens to the processes of a stalled run (D16, T141)."""
    max_output: int = 2 * 1024**3
    """Bytes an agent may print before the run is ended."""
    engine: str = "hollow"
    """What drives the agent process."""
    model: str = "qwen3.5:9b"
    """The model, in the engine's own spelling."""
    mind: MindName = "auto"
    """What thinks inside a hollow agent; auto is ollama where it answers, else reflex."""
    num_ctx: int = 32_768
    """Context window asked of Ollama, in tokens."""
    keep_alive: str = "10m"
    """How long Ollama keeps the model loaded, spelled as Ollama reads it."""
    call_timeout: float = 600.0
    """Seconds one call of a model may take."""
    max_turns: int = 24
    """Model turns a run may take."""
    sandbox: Sandbox = "auto"
    """The floor of isolation: no run below it. auto and none set no floor; the best there is gets used anyway."""
    keep_for: float | None = None
    """Seconds for which `gc` keeps finished boxes; None for ever."""
    keep_runs: int | None = None
    """Finished boxes that `gc` keeps; None for all."""
    ops: tuple[str, ...] = ()
    """Names of the ops that may run at all (design, section 8)."""
    env: tuple[str, ...] = ()
    """Names of further environment variables that the agent gets."""


PREFIX: Final = "AGENT_BOX_"
"""An environment variable ``AGENT_BOX_STALL_AFTER`` sets ``stall_after``."""

_SECRET: Final = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|SESSION|PRIVATE|DSN", re.IGNORECASE)

RESERVED: Final = frozenset({"RUN", "MARK", "RUN_DIR", "TASK", "VENV", "REPORT_FD", "MENDED"})
"""Names after the prefix that the box itself uses: never a setting, even if a setting of that name came one day."""

# A settings file is a page; far beyond that it is an attack on the parser or the wrong file.
_LARGEST_FILE: Final = 64 * 1024
_SPELLINGS_OF_NONE: Final = frozenset({"none", "off", "never", "no"})
_ONE_A_LINE: Final = "Write one `name: value` a line."
# A list in a mapping is two deep; a few more get a better sentence than this one.
_DEEPEST: Final = 8
_OPENING: Final = frozenset({"MappingStartEvent", "SequenceStartEvent"})
_CLOSING: Final = frozenset({"MappingEndEvent", "SequenceEndEvent"})
_NULL: Final = "tag:yaml.org,2002:null"
_STRICTNESS: Final = ("none", "auto", "partial", "full")
# Names that end up in an argv, an environment or a file name: the form alone keeps options and paths out.
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_OP: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ENGINE: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_MODEL: Final = re.compile(r"[A-Za-z0-9][\w.:/@+\[\]-]{0,199}", re.ASCII)
_OLLAMA_TIME: Final = re.compile(r"(?:[0-9]{1,9}(?:ms|s|m|h))+")


# --- What a setting accepts -------------------------------------------------------------------------------------------


def _whole(low: int, high: int) -> Callable[[Written], int]:
    """Accept a whole number from *low* to *high*."""

    def _accept(value: Written) -> int:
        text = str(value).strip()
        if not re.fullmatch(r"[0-9]{1,12}", text) or not low <= int(text) <= high:
            raise OperatorError(f"{reprlib.repr(text)} is not a whole number from {low} to {high}.")
        return int(text)

    return _accept


def _one_of(*choices: str) -> Callable[[Written], str]:
    """Accept one of the words *choices*."""

    def _accept(value: Written) -> str:
        text = str(value).strip()
        if text not in choices:
            raise OperatorError(f"{reprlib.repr(text)} is not one of {', '.join(choices)}.", _nearest(text, choices))
        return text

    return _accept


def _matching(shape: re.Pattern[str], what: str) -> Callable[[Written], str]:
    """Accept a text of the *shape* that *what* describes."""

    def _accept(value: Written) -> str:
        text = str(value).strip()
        if not shape.fullmatch(text):
            raise OperatorError(f"{reprlib.repr(text)} is not {what}.")
        return text

    return _accept


def _positive(value: Written) -> float:
    """Accept a duration longer than nothing: a timer of zero would end every run at once."""
    seconds = parse_duration(value)
    if seconds == 0:
        raise OperatorError("It must be longer than 0 s.")
    return seconds


def _size(value: Written) -> int:
    size = parse_size(value)
    if size == 0:
        raise OperatorError("It must be larger than 0 bytes.")
    return size


def _or_none(read: Callable[[Written], Any]) -> Callable[[Written], Any]:
    """Accept also ``none``, so that a flag can lift what the file sets."""
    return lambda value: None if str(value).strip().lower() in _SPELLINGS_OF_NONE else read(value)


def _keep_alive(value: Written) -> str:
    """Accept what Ollama reads, spelled its way: a bare number in a string is an error there, ``-1s`` is for ever."""
    text = str(value).strip()
    if re.fullmatch(r"-1|[0-9]{1,9}", text):
        return text + "s"
    if text == "-1s" or _OLLAMA_TIME.fullmatch(text):
        return text
    raise OperatorError(
        f"{reprlib.repr(text)} is not a time to keep a model loaded.", "Write 10m, 1h, 0 or -1 (for ever)."
    )


def _names(shape: re.Pattern[str], what: str) -> Callable[[Written | list[str]], tuple[str, ...]]:
    """Accept a list of names, or one text with commas between them; each name once, in order."""
    read_one = _matching(shape, what)

    def _accept(value: Written | list[str]) -> tuple[str, ...]:
        parts = value if isinstance(value, list) else str(value).split(",")
        return tuple(dict.fromkeys(read_one(part) for part in parts if part.strip()))

    return _accept


@dataclass(frozen=True, slots=True)
class _Setting:
    """One line of the table below."""

    read: Callable[[Any], Any]
    """Turns what was written into the field's value; raises OperatorError."""
    written: str
    """The default as it would be written in agent.yaml."""
    why: str
    """One line of explanation for the template."""
    many: bool = False
    """Whether agent.yaml may give a list."""


_SETTINGS: Final[dict[str, _Setting]] = {
    "stall_after": _Setting(_positive, "5m", "Silence after which a run counts as stalled."),
    "linger": _Setting(parse_duration, "60s", "How long an agent may live on after its result."),
    "grace": _Setting(parse_duration, "10s", "Time between asking a process to end and killing it."),
    "timeout": _Setting(_or_none(_positive), "none", "Longest time for a whole run."),
    "on_stall": _Setting(_one_of("reap", "mark"), "reap", "A stalled run is ended (reap) or only marked (mark)."),
    "max_output": _Setting(_size, "2GiB", "What an agent may print before its run is ended."),
    "engine": _Setting(_matching(_ENGINE, "the name of an engine"), "hollow", "What drives the agent."),
    "model": _Setting(_matching(_MODEL, "the name of a model"), "qwen3.5:9b", "The model, as the engine spells it."),
    "mind": _Setting(
        _one_of("auto", "ollama", "reflex"), "auto", "What thinks in a hollow agent; reflex needs no model."
    ),
    "num_ctx": _Setting(_whole(512, 4_194_304), "32768", "Context window asked of Ollama, in tokens."),
    "keep_alive": _Setting(_keep_alive, "10m", "How long Ollama keeps the model loaded; -1 is for ever."),
    "call_timeout": _Setting(_positive, "10m", "Longest time for one call of a model."),
    "max_turns": _Setting(_whole(1, 10_000), "24", "Model turns that a run may take."),
    "sandbox": _Setting(
        _one_of("full", "partial", "none", "auto"),
        "auto",
        "Least isolation a run needs: full, partial, none. This file can only ask for more than flag or environment.",
    ),
    "keep_for": _Setting(_or_none(parse_duration), "none", "How long `agent gc` keeps finished boxes, such as 30d."),
    "keep_runs": _Setting(_or_none(_whole(0, 10_000_000)), "none", "How many finished boxes `agent gc` keeps."),
    "ops": _Setting(_names(_OP, "the name of an op"), "[]", "Ops that may run, by name; none otherwise.", many=True),
    "env": _Setting(
        _names(_VARIABLE, "the name of an environment variable"),
        "[]",
        "Further environment variables that the agent gets, by name.",
        many=True,
    ),
}

TEMPLATE: Final = (
    "# Settings of Agent Box. Every line is optional; flag and environment (AGENT_BOX_GRACE=5s) go first.\n"
    + "".join(f"\n# {setting.why}\n# {name}: {setting.written}\n" for name, setting in _SETTINGS.items())
)
"""What `agent init` writes to agent.yaml: every setting with its default, commented out."""


# --- Where a setting comes from ---------------------------------------------------------------------------------------


def resolve(
    flags: Mapping[str, Any], environ: Mapping[str, str], text: str | None, *, path: str = "agent.yaml"
) -> Config:
    """Return the settings of this invocation: flag before environment before file before default.

    *flags* maps field names to what was typed; None and empty lists are flags not given. *environ* is searched for
    ``AGENT_BOX_<FIELD>``; other variables with that prefix are none of its business, empty ones count as absent.
    *text* is the content of the file called *path*, None without one. Raises OperatorError naming the flag, the
    variable, or key and line of the file, also for a value that another one overrides. One field is no plain
    precedence: the project's file may raise the ``sandbox`` that flag or environment ask for, never lower it (design,
    section 8).
    """
    # Every source is read in full before they are ranked: a slip in the file must not wait for the day it counts.
    file = dict(_from_file(text, path)) if text else {}
    given = ChainMap(dict(_from_flags(flags)), dict(_from_environ(environ)), file)
    asked = (file.get("sandbox", "none"), ChainMap(*given.maps[:-1]).get("sandbox", Config().sandbox))
    return Config(**{**given, "sandbox": max(asked, key=_STRICTNESS.index)})


def _read(name: str, value: Any, where: str) -> Any:
    """Return the value of the setting *name* written as *value*; an error begins with *where*."""
    try:
        return _SETTINGS[name].read(value)
    except OperatorError as error:
        raise OperatorError(f"{where}: {error.message}", error.hint) from None


def _from_flags(flags: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    # An option that may be repeated arrives as an empty list when it was not given at all.
    for name, value in flags.items():
        if value is not None and value not in ([], ()):
            plain = list(value) if isinstance(value, tuple) else value
            yield name, _read(name, plain, "--" + name.replace("_", "-"))


def _from_environ(environ: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    # Settings are looked up, not variables sorted out: other programs may use the prefix as they like.
    for name in _SETTINGS:
        variable = PREFIX + name.upper()
        if name.upper() not in RESERVED and (value := environ.get(variable, "").strip()):
            yield name, _read(name, value, variable)


def _nearest(word: str, known: tuple[str, ...]) -> str:
    """Return a hint with the *known* word that was probably meant, or with all of them."""
    near = difflib.get_close_matches(word[:64].lower().replace("-", "_"), known, n=1)
    return f"Did you mean `{near[0]}`?" if near else f"Known: {', '.join(known)}."


# --- agent.yaml -------------------------------------------------------------------------------------------------------


def _from_file(text: str, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the settings that *text* gives, with key and line in every complaint."""
    seen: dict[str, int] = {}
    for key, node in _entries(text, path):
        line = _line(key.start_mark)
        where = f"{path} line {line}"
        name = _scalar(key, where)
        if name not in _SETTINGS:
            raise OperatorError(f"{where}: {reprlib.repr(name)} is not a setting.", _nearest(name, tuple(_SETTINGS)))
        if name in seen:
            raise OperatorError(f"{where}: `{name}` is already set in line {seen[name]}.", "Remove one of them.")
        seen[name] = line
        if (value := _plain(node, f"{where}: `{name}`", many=_SETTINGS[name].many)) is not None:
            read = _read(name, value, f"{where}: `{name}`")
            if name == "env":
                _refuse_secrets(read, f"{where}: `{name}`")
            yield name, read


def _refuse_secrets(names: tuple[str, ...], where: str) -> None:
    """Refuse to let a project's file hand the operator's secrets to an agent: the project may be a stranger's."""
    for name in filter(_SECRET.search, names):
        hint = f"If you mean it, say it yourself: {PREFIX}ENV={name} ./agent …"
        raise OperatorError(f"{where}: {name} looks like a secret, which a project's file may not pass on.", hint)


def _entries(text: str, path: str) -> list[tuple[yaml.Node, yaml.Node]]:
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
        raise OperatorError(f"{path} line {_line(root.start_mark)}: these are not settings.", _ONE_A_LINE)
    return cast("list[tuple[yaml.Node, yaml.Node]]", root.value)


def _compose(text: str, path: str) -> yaml.Node | None:
    """Return the tree of the only YAML document in *text*, in which no node stands for another."""
    import yaml

    try:
        _check_events(yaml.parse(text, Loader=yaml.SafeLoader), path)
        # Nodes keep their line and their text: "off" stays a word and 010 a number as typed, whatever YAML makes of it.
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        hint = "Indent with spaces, not tabs." if "\\t" in str(error.problem) else _ONE_A_LINE
        where = f"{path} line {_line(error.problem_mark)}"
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
        where = f"{path} line {_line(event.start_mark)}"
        depth += (type(event).__name__ in _OPENING) - (type(event).__name__ in _CLOSING)
        if depth > _DEEPEST:
            raise OperatorError(f"{where}: nested too deeply.", _ONE_A_LINE)
        if getattr(event, "anchor", None):
            raise OperatorError(f"{where}: anchors and aliases are not accepted.", "Write the value out.")


def _line(mark: Any) -> int:
    """Return the line of *mark*, counted from one as editors do."""
    return mark.line + 1 if mark else 1


def _scalar(node: yaml.Node, where: str) -> str:
    """Return the text of a scalar *node*; tags of the writer's own are refused with everything else."""
    # What YAML resolves by itself has one of these tags; !!binary, !!python/… and !mine are asked for by name.
    kinds = {"str", "int", "float", "bool", "null", "timestamp", "merge", "value"}
    if not isinstance(node.value, str) or node.tag.removeprefix("tag:yaml.org,2002:") not in kinds:
        raise OperatorError(f"{where}: a plain value belongs here.", _ONE_A_LINE)
    return node.value


def _plain(node: yaml.Node, where: str, *, many: bool) -> str | list[str] | None:
    """Return what *node* says as text, or as texts where *many* are welcome; None when it says nothing."""
    if node.tag == _NULL:
        return None
    if many and node.tag == "tag:yaml.org,2002:seq":
        return [_scalar(item, where) for item in node.value]
    return _scalar(node, where)
