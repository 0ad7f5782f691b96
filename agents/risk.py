"""What a change may not contain, and what a human must be told of before it is merged; a judgement over tree diffs."""

from __future__ import annotations

import re
import unicodedata
from types import MappingProxyType

from agents.redact import visible
from agents.sensitive import ELEVATED, kinds_of
from essentials.patterns import late
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Final

    from agents.cleanroom import Change

MANY_FILES: Final = 50
"""Files above which a change counts as too large to be read with care (M12)."""
MANY_LINES: Final = 1000
"""Changed lines above which it does."""
LONGEST_LINE: Final = 2000
"""Bytes above which a line is no longer one that a human wrote or reads: generated or minified (M12)."""

ABSENT: Final = "000000"
_REGULAR: Final = "100644"
_EXECUTABLE: Final = "100755"
_LINK: Final = "120000"
_GITLINK: Final = "160000"
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Flag:
    """One thing that the operator is told about a change."""

    kind: str
    """Name of the shape or class, the same in ledger, tests and documentation."""
    message: str
    """One sentence."""
    paths: tuple[str, ...] = ()
    """The files it is about, made visible."""

    def __str__(self) -> str:
        """The sentence with the first of the files."""
        more = len(self.paths) - _SHOWN
        shown = ", ".join(self.paths[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        return f"{self.message.rstrip('.')}: {shown}." if self.paths else self.message


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a change is made of."""

    refused: tuple[Flag, ...]
    """Shapes that are never merged, whoever approves."""
    elevated: tuple[Flag, ...]
    """Classes that an approval acknowledges."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a change is."""

    files: int = 0
    added: int = 0
    removed: int = 0
    binary: int = 0


@dataclass(frozen=True, slots=True)
class Text:
    """What the added lines of a patch hold; names are as the patch spells them."""

    binary: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    """Files with added characters that are not seen or change the order in which text is read."""
    long: tuple[str, ...] = ()
    """Files with added lines longer than :data:`LONGEST_LINE`."""


def judge(
    changes: Sequence[Change],
    sizes: Sizes,
    *,
    links: Mapping[bytes, bytes] | None = None,
    text: Text | None = None,
) -> Verdict:
    """The verdict on *changes*, the raw diff of two trees (G33, G34, M12-M14, design section 7).

    *links* gives the target of every symbolic link that was added or changed, by its path: one that is not told counts
    as leaving the repository. *text* is what :func:`read_patch` found. Nothing is raised.
    """
    refused = [*_bad_paths(changes), *_bad_modes(changes), *_bad_links(changes, links or {})]
    elevated = [*_classes(changes), *_new_modes(changes), *_contents(text or Text()), *_large(sizes)]
    return Verdict(tuple(refused), tuple(elevated))


# --- Refused shapes ---------------------------------------------------------------------------------------------------

# Code points that HFS+ leaves out when it compares names (git's own list, utf8.c): `.g\u200cit` opens `.git` there.
_IGNORED: Final = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)  # fmt: skip
# NTFS gives long names a short second one.
_SHORT: Final = late(r"(?:git|\.git)~\d+")
_MODULES: Final = late(r"\.gitmodules|gitmod~\d+|gi7eba~\d+")
_OURS: Final = frozenset({".agents", ".claude", "agent_box"})


def folded(component: str) -> str:
    """The name that *component* is on a file system that folds case, ignores code points or cuts ends (G33)."""
    plain = unicodedata.normalize("NFC", component.translate(_IGNORED)).casefold()
    # NTFS: a stream after a colon belongs to the same file, trailing dots and blanks are not part of a name.
    return plain.partition(":")[0].rstrip(". ") or plain


def components(path: bytes) -> tuple[str, ...]:
    """The names that *path* is made of, folded; a backslash separates too, as it does on Windows."""
    return tuple(folded(each) for each in re.split(r"[/\\]", path.decode("utf-8", "surrogateescape")))


def _is_git(parts: Sequence[str], _path: bytes) -> bool:
    return any(part == ".git" or _SHORT.fullmatch(part) for part in parts)


def _is_ours(parts: Sequence[str], _path: bytes) -> bool:
    return parts[0] in _OURS


def _leaves(_parts: Sequence[str], path: bytes) -> bool:
    raw = re.split(rb"[/\\]", path)
    # A drive letter is absolute where the repository is checked out on Windows.
    drive = re.match(rb"[A-Za-z]:", path)
    return bool(drive) or any(part in {b"", b".", b".."} for part in raw)


def _is_modules(parts: Sequence[str], _path: bytes) -> bool:
    return any(_MODULES.fullmatch(part) for part in parts)


_PATHS: Final[Mapping[str, tuple[str, Callable[[Sequence[str], bytes], bool]]]] = MappingProxyType(
    {
        "git directory": ("It would write into a git directory.", _is_git),
        "agent box": ("It would change the data of Agent Box or the commands of its operator.", _is_ours),
        "outside": ("Its path leaves the repository.", _leaves),
        "submodules": ("It would change which submodules there are.", _is_modules),
    }
)


def _bad_paths(changes: Iterable[Change]) -> list[Flag]:
    named = [(change, components(change.path)) for change in changes]
    found = {
        kind: [change for change, parts in named if matches(parts, change.path)]
        for kind, (_, matches) in _PATHS.items()
    }
    return [Flag(kind, _PATHS[kind][0], _names(hit)) for kind, hit in found.items() if hit]


def _bad_modes(changes: Sequence[Change]) -> list[Flag]:
    modules = [change for change in changes if _GITLINK in {change.old_mode, change.new_mode}]
    odd = [change for change in changes if change.new_mode not in {ABSENT, _REGULAR, _EXECUTABLE, _LINK, _GITLINK}]
    flags = [
        Flag("gitlink", "It would add, move or remove a nested repository.", _names(modules)),
        Flag("mode", "It has a file mode that git does not know.", _names(odd)),
    ]
    return [flag for flag in flags if flag.paths]


def _bad_links(changes: Iterable[Change], links: Mapping[bytes, bytes]) -> list[Flag]:
    # A link that goes cannot lead anywhere any more.
    made = [change for change in changes if change.new_mode == _LINK]
    bad = [change for change in made if escapes(change.path, links.get(change.path, b"/"))]
    return (
        [Flag("link", "A symbolic link leads out of the repository or into a git directory.", _names(bad))]
        if bad
        else []
    )


def escapes(path: bytes, target: bytes) -> bool:
    """Whether the symbolic link *path* with this *target* leads out of the repository or into a git directory.

    A target may climb only at its beginning: after a name, which may itself be a link to a place less deep, nobody can
    say without looking at the disk where `..` leads.
    """
    parts = re.split(rb"[/\\]", target)
    ups = 0
    while ups < len(parts) and parts[ups] in {b"..", b"."}:
        ups += 1
    climbed = parts[:ups].count(b"..")
    inner = [folded(part.decode("utf-8", "surrogateescape")) for part in parts]
    return (
        _absolute(target)
        or climbed > path.count(b"/")
        or b".." in parts[ups:]
        or any(part == ".git" or _SHORT.fullmatch(part) for part in inner)
    )


def _absolute(target: bytes) -> bool:
    return target.startswith((b"/", b"\\")) or bool(re.match(rb"[A-Za-z]:", target)) or not target


# --- Elevated classes -------------------------------------------------------------------------------------------------


def touching(changes: Iterable[Change], kind: str) -> tuple[Change, ...]:
    """Those of *changes* whose path belongs to the elevated class *kind*."""
    return tuple(change for change in changes if kind in kinds_of("/".join(components(change.path))))


def _classes(changes: Iterable[Change]) -> list[Flag]:
    found: dict[str, list[Change]] = {}
    for change in changes:
        for name in kinds_of("/".join(components(change.path))):
            found.setdefault(name, []).append(change)
    return [Flag(name, ELEVATED[name].message, _names(found[name])) for name in ELEVATED if name in found]


def _new_modes(changes: Sequence[Change]) -> list[Flag]:
    programs = [change for change in changes if change.new_mode == _EXECUTABLE != change.old_mode]
    links = [change for change in changes if change.new_mode == _LINK]
    flags = [
        Flag("executable", "It makes files executable.", _names(programs)),
        Flag("symlink", "It makes symbolic links.", _names(links)),
    ]
    return [flag for flag in flags if flag.paths]


def _contents(text: Text) -> list[Flag]:
    flags = [
        Flag("binary", "It changes files whose content is not shown.", text.binary),
        Flag("invisible", "It adds characters that are not seen or reorder text.", text.hidden),
        Flag("long lines", "It adds lines that are too long to be read.", text.long),
    ]
    return [flag for flag in flags if flag.paths]


def _large(sizes: Sizes) -> list[Flag]:
    lines = sizes.added + sizes.removed
    if sizes.files <= MANY_FILES and lines <= MANY_LINES:
        return []
    return [Flag("size", f"It is large: {sizes.files} files, {lines} lines.")]


def _names(changes: Iterable[Change]) -> tuple[str, ...]:
    return tuple(visible(change.path.decode("utf-8", "backslashreplace")) for change in changes)


# --- The added lines of a patch ---------------------------------------------------------------------------------------

_HUNK: Final = late(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_PLAIN: Final = late(rb"[\t\r\x20-\x7e]*+")


def read_patch(patch: bytes) -> Text:
    """What the added lines of *patch* hold; it must be one that this program made itself, from two trees (G34).

    Lines are counted as the hunks announce them, so that a line of a file cannot pass for a header.
    """
    name, left = "", 0
    found: dict[str, dict[str, None]] = {"binary": {}, "hidden": {}, "long": {}}
    for line in patch.split(b"\n"):
        # Inside of a hunk every line is content, whatever it begins with.
        if left > 0:
            left -= _weight(line)
            for fault in _faults(line[1:]) if line.startswith(b"+") else ():
                found[fault][name] = None
        elif line.startswith(b"diff --git "):
            name = _name(line)
        elif line.startswith((b"GIT binary patch", b"Binary files ")):
            found["binary"][name] = None
        elif hunk := _HUNK.match(line):
            left = sum(map(_lines, hunk.groups()))
    return Text(**{fault: tuple(names) for fault, names in found.items()})


def _lines(count: bytes | None) -> int:
    """How many lines a hunk announces; one where it says nothing."""
    return 1 if count is None else int(count)


def _weight(line: bytes) -> int:
    """How many of the lines that a hunk has announced, old and new ones together, *line* stands for."""
    return {b" ": 2, b"+": 1, b"-": 1}.get(line[:1], 0)


def _faults(line: bytes) -> list[str]:
    found = ["long"] if len(line) > LONGEST_LINE else []
    if _PLAIN.fullmatch(line):
        return found
    # The end of a line in the other style is no disguise.
    shown = line.removesuffix(b"\r").decode("utf-8", "replace").replace("\t", " ")
    # A blank of another width is shown as a blank, and what is no UTF-8 at all stands out by itself.
    odd = any(visible(char) not in {char, " "} for char in set(shown))
    return [*found, "hidden"] if odd else found


def _name(header: bytes) -> str:
    """The file that a `diff --git a/x b/x` line is about: both halves are the same, as nothing is renamed."""
    rest = header.removeprefix(b"diff --git ")
    # The separator alone would not tell: names may hold " b/".
    half = rest[len(rest) // 2 + 1 :]
    return half.strip(b'"').removeprefix(b"b/").decode("utf-8", "replace")
