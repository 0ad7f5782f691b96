"""Places in a change that deserve a second look, by what was added: a table of rules."""

from __future__ import annotations

import re

from essentials.patterns import late
from essentials.records import dataclass
from hollow.kinds import Kind, kind, language

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Final

    from hollow.change import Line, Touched

_LARGE: Final = 800
"""Added lines of one file beyond which nobody reads with care."""
# The first two rows are formats of well-known services; the last one is any value that is assigned to a telling name.
_SECRET: Final = late(
    r"(?:AKIA|ASIA)[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{30,}|sk-[A-Za-z0-9_-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----"
    r"|(?i:pass(?:word|wd)|secret|token|api_?key|credential)\w*['\"]?\s*[:=]\s*['\"](?P<value>[^'\"\s]{8,})['\"]"
)
# Read or run by a tool before anybody looks: a change here acts on whoever checks the change out.
_LATER: Final = late(
    r"(?:^|/)(?:\.github/(?:workflows|actions)/|\.gitlab-ci|\.circleci/|Jenkinsfile|\.pre-commit-config|\.husky/|hooks/"
    r"|setup\.py$|conftest\.py$|noxfile\.py$|tox\.ini$|Makefile$|package\.json$|pyproject\.toml$|build\.rs$|Dockerfile|\.envrc$"
    r"|[^/]*\.(?:pth|sh|ps1|bat)$|CLAUDE\.md$|AGENTS\.md$|\.claude/)",
    re.IGNORECASE,
)
_LINE_RULES: Final = (
    ("a merge conflict marker", late(r"^(?:<{7} |>{7} |={7}$|\|{7} )"), ""),
    (
        "a debug print or breakpoint",
        late(r"^\s*(?:breakpoint\(\)|import i?pdb|(?:i?pdb)\.set_trace|debugger;?\s*$|binding\.pry|dbg!\()"),
        "",
    ),
    ("a debug print", late(r"^\s*print\("), "python"),
    ("a debug print", late(r"^\s*console\.(?:log|debug)\("), "javascript"),
    ("a debug print", late(r"^\s*fmt\.Print(?:ln|f)?\("), "go"),
    # The last letter in brackets: whoever searches this project for such notes must not find the rule.
    ("a note to do later", late(r"\b(?:TO[D]O|FIX[M]E|XX[X]|HAC[K])\b"), ""),
    (
        "an exception swallowed",
        late(r"^\s*except(?:\s+(?:Base)?Exception)?\s*:\s*(?:pass|\.\.\.)?\s*(?:#.*)?$"),
        "python",
    ),
    ("code that runs text", late(r"(?<![\w.])(?:eval|exec)\(|shell\s*=\s*True|\bos\.system\("), ""),
    ("a disabled check", late(r"verify\s*=\s*False|InsecureSkipVerify:\s*true|rejectUnauthorized:\s*false"), ""),
    (
        "a skipped test",
        late(r"pytest\.mark\.(?:skip|xfail)|@(?:unittest\.)?skip|\b(?:it|test|describe)\.skip\(|t\.Skip\("),
        "",
    ),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that deserves a second look."""

    path: str
    line: int
    """1-based; 0 where the whole file is meant."""
    what: str
    text: str = ""
    """The line, secrets masked."""


def findings(files: Iterable[Touched]) -> list[Finding]:
    """Return what stands out in *files*, the gravest sort first, then in the order of the change."""
    found = [finding for file in files for finding in (*_of_file(file), *_of_lines(file))]
    return sorted(found, key=lambda finding: _GRAVITY.get(finding.what, len(_GRAVITY)))


# The rest keeps the order of the change, in which a reviewer reads.
_GRAVITY: Final = {
    what: rank
    for rank, what in enumerate(["a merge conflict marker", "what looks like a secret", "a file that runs code later"])
}


def masked(text: str) -> str:
    """Return *text* with everything that looks like a secret replaced by stars after its first four characters."""
    return _SECRET.sub(_stars, text)


def _stars(hit: re.Match[str]) -> str:
    # Four characters tell which key it is, and are no use to anybody else.
    value = hit["value"] or hit[0]
    return hit[0].replace(value, f"{value[:4]}****")


def _of_file(file: Touched) -> Iterator[Finding]:
    if _LATER.search(file.path):
        yield Finding(file.path, 0, "a file that runs code later")
    if file.binary and file.status != "deleted":
        yield Finding(file.path, 0, "a binary file, which a diff does not show")
    if file.added > _LARGE and kind(file.path) is not Kind.GENERATED:
        yield Finding(file.path, 0, f"a large addition ({file.added} lines)")


def _of_lines(file: Touched) -> Iterator[Finding]:
    spoken, is_test = language(file.path), kind(file.path) is Kind.TEST
    for line in file.lines:
        if _SECRET.search(line.text):
            yield Finding(file.path, line.number, "what looks like a secret", masked(line.text.strip()))
        for what in _rules_hit(line, spoken, is_test):
            yield Finding(file.path, line.number, what, masked(line.text.strip()))


def _rules_hit(line: Line, spoken: str, is_test: bool) -> Iterator[str]:
    """Names of the rules that *line* meets; a print in a test is no trace of debugging."""
    for what, pattern, only in _LINE_RULES:
        if only in {"", spoken} and pattern.search(line.text) and not (is_test and what == "a debug print"):
            yield what
