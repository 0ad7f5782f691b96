"""Claims of a text about files of the repository: which there are, and whether the files bear them out."""

from __future__ import annotations

import re

from essentials.patterns import late
from essentials.records import dataclass
from hollow.kinds import language

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Final

LIMIT: Final = 200
"""Claims of one text that are looked at; a text with more is a listing."""
ASKED: Final = 3
"""References that the mind is shown (S33)."""
AIRLOCK: Final = "/agentOS/"
"""How the seeds' paths begin; it means the top of the airlock."""

_MOST_TEXT: Final = 60_000
_LONG_LINE: Final = 2_000
_AROUND: Final = 3
"""Lines shown before and after a cited one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A claim that something stands in a file."""

    path: str
    """Relative to the top of the repository, as it is written."""
    claim: str
    """The line in which it is made."""
    line: int = 0
    """The last line cited, 1-based; 0 where none is."""
    symbol: str = ""
    """What is said to be in the file; empty for the file as such."""


_URL: Final = late(r"\b\w{2,10}://\S+|\bmailto:\S+")
_FENCE: Final = late(r"^\s*(?:```|~~~)")
# Bounded on both sides, so that globs, templates and variables ("tests/*.py", "<name>.py") are no paths.
_PATH: Final = late(
    r"(?<![\w./@+*<>{}$~\\:-])(?P<path>(?:/agentOS/|\./)?[\w@+][\w.@+-]*(?:/[\w.@+-]+)*)(?::(?P<line>\d{1,7})(?:-(?P<end>\d{1,7}))?)?"
    r"(?![\w*<>{}$/\\])"
)
_HOST: Final = late(r"^[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|ai|co|edu|gov|app)$", re.IGNORECASE)
_NAME: Final = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_BEFORE: Final = late(
    rf"(?:\b(?:function|method|class|constant|variable|symbol|type|module attribute)\s+`?(?P<noun>{_NAME})(?:\(\))?`?"
    rf"|`(?P<quoted>{_NAME})(?:\([^`()]{{0,80}}\))?`)"
    r"[\s,]+(?:\(?(?:is|are|was|which|that)\s+)?(?:(?:defined|declared|implemented|found|located|lives|stands)\s+)?"
    r"(?:in|of|from|at|inside|within)\s+(?:the\s+)?(?:file\s+|module\s+)?[`(\[\"']*$",
    re.IGNORECASE,
)
"""What stands before a path when something is said to be in it."""
_AFTER: Final = late(rf"^[`)\]\"']*(?:'s)?[\s:,(—–-]{{1,4}}`(?P<quoted>{_NAME})(?:\([^`()]{{0,80}}\))?`")
"""What stands after it then."""
_WISH: Final = late(
    r"\b(?:add(?:s|ed|ing)?|creat(?:e|es|ed|ing)|new|propos\w+|introduc\w+|should|would|will|could|might|if|rename\w*|mov(?:e|ed|ing)"
    r"|plan\w*|writ(?:e|es|ing)|instead|e\.g\.|example|such as|like|suggest\w*)\b",
    re.IGNORECASE,
)
_DENIAL: Final = late(
    r"\b(?:neither|without|missing|absent|lacks?|lacking|nonexistent|removed|deleted)\b"
    r"|\bno\s+(?:such\b|longer\b|(?:\w+\s+){0,2}[`\"'§])"
    r"|[`\"'§)]\s+(?:is|are|was|were|has|have)\s+(?:\w+\s+)?gone\b"
    r"|\b(?:not|never|cannot|\w+n't)\b(?:\s+\w+){0,2}?\s+(?:exist|there|defin|present|found|find|implement|declar|contain|have|has|hold"
    r"|mention|includ|see|seen)",
    re.IGNORECASE,
)
"""What makes a sentence speak of what is not there; such a sentence is no claim that it is. A "not" or "gone" of
anything else takes nothing back."""


def references(text: str, own: Collection[str] = ()) -> tuple[Reference, ...]:
    """Return the claims of *text* about files, in order, each once.

    They are ``path:line`` anywhere, a path with a folder and a known suffix in prose, and a symbol next to a path
    ("function `x` in `y.py`"). No claims are addresses, globs, what is proposed or said to be missing, and *own*: the
    files that the same goal wrote.
    """
    mine = {each.removeprefix(AIRLOCK) for each in own}
    found: dict[tuple[str, int, str], Reference] = {}
    for line, fenced in _lines(text):
        for each in _in_line(line, fenced=fenced):
            if not _is_own(each.path, mine):
                found.setdefault((each.path, each.line, each.symbol), each)
    return tuple(found.values())[:LIMIT]


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """The lines of *text* without addresses, each with whether it stands in a fenced block."""
    fenced = False
    for line in text[:_MOST_TEXT].splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif len(line) <= _LONG_LINE:
            yield _URL.sub(" ", line), fenced


def _in_line(line: str, *, fenced: bool) -> Iterator[Reference]:
    for hit in _PATH.finditer(line):
        path = _path(hit["path"], cited=hit["line"] is not None)
        if path is None:
            continue
        number = int(next(filter(None, hit.group("end", "line")), 0))
        meant = not fenced and not _is_unsure(_sentence(line, hit.start(), hit.end()), number)
        symbol = _symbol(line[: hit.start()], line[hit.end() :]) if meant else ""
        # A cited line is always a claim. A bare name may be short for a path, so it claims nothing by itself.
        if number or symbol or ("/" in path and meant):
            yield Reference(path=path, claim=line.strip()[:400], line=number, symbol=symbol)


def _is_unsure(sentence: str, number: int) -> bool:
    """Whether *sentence* speaks of what is not there or only wished for; who cites a line *number* wishes nothing."""
    return bool(_DENIAL.search(sentence) or (not number and _WISH.search(sentence)))


def _path(word: str, *, cited: bool) -> str | None:
    """*word* as a path of the repository, or None where it is none."""
    path = word.removeprefix(AIRLOCK).removeprefix("./").rstrip(".")
    top = path.split("/", 1)[0]
    if not path or ".." in path.split("/") or top == ".agents" or _HOST.match(top):
        return None
    known = "." in path.rsplit("/", 1)[-1].lstrip(".") and bool(language(path))
    return path if known or (cited and language(path)) else None


def _sentence(line: str, start: int, end: int) -> str:
    """What is said about the place, itself shown as §: from the sentence's end before it to the one after it."""
    before = max(line.rfind(mark, 0, start) for mark in (". ", "; ", "! ", "? ")) + 1
    ends = [at for mark in (". ", "; ", "! ", "? ") if (at := line.find(mark, end)) >= 0]
    return f"{line[before:start]}§{line[end : min(ends, default=len(line))]}"


def _symbol(before: str, after: str) -> str:
    found = _BEFORE.search(before[-200:])
    if found:
        return found["noun"] or found["quoted"]
    found = _AFTER.match(after[:200])
    return found["quoted"] if found else ""


def _is_own(path: str, own: Collection[str]) -> bool:
    return any(each == path or each.endswith("/" + path) for each in own)


def check(refs: Iterable[Reference], read: Callable[[str], str | None]) -> str | None:
    """Return the sentence that names the first of *refs* that is false, or None.

    *read* gives the text of a file of the repository, None where there is none. A bare file name is short for the one
    path of that name which is cited beside it.
    """
    rows = list(refs)
    texts: dict[str, str | None] = {}
    for each in rows:
        path = _full(each.path, rows, read)
        if path not in texts:
            texts[path] = read(path)
        if wrong := _wrong(each, path, texts[path]):
            return wrong
    return None


def _full(path: str, refs: Sequence[Reference], read: Callable[[str], str | None]) -> str:
    if "/" in path or read(path) is not None:
        return path
    long = sorted({each.path for each in refs if each.path.endswith("/" + path)})
    return long[0] if len(long) == 1 else path


def _wrong(ref: Reference, path: str, text: str | None) -> str | None:
    if text is None:
        about = f"{path}:{ref.line}" if ref.line else path
        return f"{about} is cited, but there is no file {path}."
    lines = len(text.splitlines())
    # A file without any line is cited by its first, as every other.
    if ref.line > max(1, lines):
        return f"{path}:{ref.line} is cited, but {path} has {lines} lines."
    last = ref.symbol.rsplit(".", 1)[-1]
    if last and not re.search(rf"(?<!\w){re.escape(last)}(?!\w)", text):
        return f"`{ref.symbol}` is said to be in {path}, but nothing of that name is there."
    return None


def shown(refs: Iterable[Reference], read: Callable[[str], str | None]) -> str:
    """Return at most :data:`ASKED` of *refs*, each with what its file says there: what the mind compares.

    The most precise claims come first. Empty where nothing is claimed.
    """
    rows = list(refs)
    best = sorted(rows, key=lambda each: (not each.line, not each.symbol))[:ASKED]
    return "\n".join(_excerpt(number, each, rows, read) for number, each in enumerate(best, 1))


def _excerpt(number: int, ref: Reference, refs: Sequence[Reference], read: Callable[[str], str | None]) -> str:
    path = _full(ref.path, refs, read)
    lines = (read(path) or "").splitlines()
    at = ref.line or _first(lines, ref.symbol)
    start = max(0, at - 1 - _AROUND)
    rows = [f"  {line}: {lines[line - 1][:160]}" for line in range(start + 1, min(len(lines), at + _AROUND) + 1)]
    return "\n".join([f"{number}. The document says: {ref.claim[:300]}", f"   {path} says:", *rows])


def _first(lines: Sequence[str], symbol: str) -> int:
    """Number of the line that defines *symbol*, else of the first that names it, else 1."""
    last = symbol.rsplit(".", 1)[-1]
    named = [number for number, line in enumerate(lines, 1) if last and re.search(rf"\b{re.escape(last)}\b", line)]
    defining = [
        number for number in named if re.search(rf"\b(?:def|class|func|fn|function)\s+{last}\b", lines[number - 1])
    ]
    return (defining or named or [1])[0]
