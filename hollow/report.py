"""A survey as a Markdown report: the places in order, why, what changed there, and how to get a model."""

from __future__ import annotations

from hollow.kinds import Kind, language
from hollow.markdown import code, fence, prose
from hollow.words import identifiers, tokens_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Final

    from hollow.history import Commit
    from hollow.survey import Hit, Survey

_SHOWN: Final = 8
"""Places with an excerpt; the rest is listed."""
MODEL_HINT: Final = (
    "No model was used: this is a ranked search of the tracked files and their history. For an answer in words start a "
    "local model (`ollama serve`, then `ollama pull qwen3.5:9b`), or let a program answer: "
    "`--engine command -- PROGRAM`."
)
_SORTS: Final = {
    Kind.TEST: "a test",
    Kind.DOC: "documentation",
    Kind.EXAMPLE: "an example",
    Kind.CONFIG: "configuration",
    Kind.GENERATED: "generated or vendored",
    Kind.OTHER: "not program text",
}
# Our names for languages where a highlighter would not know them.
_FENCES: Final = {"config": "", "text": "", "web": "", "make": "makefile", "c": "c"}


def scout(found: Survey) -> str:
    """Return the report that answers a scout."""
    if not found.hits:
        return nothing(found)
    sections = [summary(found), "## Where to look", *entries(found), *lately(found.commits), *alike(found.similar)]
    return "\n\n".join([*sections, closing(found)]) + "\n"


def summary(found: Survey) -> str:
    """Return the sentence that names the most likely place."""
    first = found.hits[0]
    inside = f", in {code(first.symbol.name)}" if first.symbol else ""
    return f"**Most likely {code(place(first))}**{inside}: {why(first, found)}."


def place(hit: Hit) -> str:
    """Return ``path:line``."""
    return f"{hit.path}:{hit.line}"


def entries(found: Survey, shown: int = _SHOWN) -> list[str]:
    """Return one section per place for the first *shown*, and one list of the others."""
    full = [_entry(number, hit, found) for number, hit in enumerate(found.hits[:shown], 1)]
    rest = [f"- {code(place(hit))}{_inside(hit)}: {why(hit, found)}" for hit in found.hits[shown:]]
    return [*full, "### Also possible\n\n" + "\n".join(rest)] if rest else full


def _entry(number: int, hit: Hit, found: Survey) -> str:
    numbered = [f"{line:>5}  {text.expandtabs(4)}" for line, text in enumerate(hit.excerpt, hit.start)]
    spoken = language(hit.path)
    others = [name for name in hit.symbols if hit.symbol is None or name != hit.symbol.name]
    names = f"\n\nSymbols: {', '.join(code(name) for name in others)}" if others else ""
    head = f"### {number}. {code(place(hit))}{_inside(hit)}\n\n{_capital(why(hit, found))}."
    says = f" It says: “{prose(hit.symbol.doc)}”" if hit.symbol and hit.symbol.doc else ""
    block = f"\n\n{fence(numbered, _FENCES.get(spoken, spoken))}" if hit.excerpt else ""
    return head + says + block + names


def _inside(hit: Hit) -> str:
    return f" · {code(hit.symbol.name)}" if hit.symbol else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def why(hit: Hit, found: Survey) -> str:
    """Return why *hit* was ranked where it is, as the part of a sentence."""
    words = asked_words(found, hit.matched)[:6]
    reasons = [
        "the question names this file" if hit.named else "",
        f"matches {', '.join(code(word) for word in words)}" if words else "",
        "defines a name that the question writes" if hit.parts.get("exact", 0) > 0 and hit.symbols else "",
        "similar past commits touched it" if hit.parts.get("history", 0) >= 0.3 else "",  # noqa: PLR2004 - a clear signal
        "changes often" if hit.parts.get("churn", 0) >= 0.8 else "",  # noqa: PLR2004 - near the top
        _SORTS.get(hit.kind, ""),
    ]
    return "; ".join(reason for reason in reasons if reason) or "its path matches"


def asked_words(found: Survey, terms: Iterable[str]) -> list[str]:
    """Return the question's own words behind the index *terms*, in the terms' order, each once."""
    spelt: dict[str, str] = {}
    for word in identifiers(found.question.text):
        for token in tokens_of(word):
            # The first spelling: it is the one that the operator is most likely to remember writing.
            spelt.setdefault(token, word)
    return list(dict.fromkeys(spelt[term] for term in terms if term in spelt))


def lately(commits: Sequence[Commit]) -> list[str]:
    """Return the section on recent commits, as a list of none or one."""
    return ["## What changed there lately\n\n" + _log(commits)] if commits else []


def alike(commits: Sequence[Commit]) -> list[str]:
    """Return the section on past commits with similar messages, as a list of none or one."""
    return ["## Similar changes in the past\n\n" + _log(commits)] if commits else []


def _log(commits: Sequence[Commit]) -> str:
    return "\n".join(f"- {code(commit.oid[:8])} {commit.date} {prose(commit.subject)}" for commit in commits)


def closing(found: Survey) -> str:
    """Return what was searched and how to get a model."""
    return f"## How this was found\n\n{_searched(found)} {MODEL_HINT}"


def _searched(found: Survey) -> str:
    words = asked_words(found, found.question.terms)[:12]
    asked = f" for {', '.join(code(word) for word in words)}" if words else ""
    return f"{len(found.paths)} tracked files were searched{asked}."


def nothing(found: Survey) -> str:
    """Return the report where no file matches."""
    hints = [
        "name a function, class, file or error message as it is written in the code",
        "check that the files are tracked (`git ls-files`); untracked and ignored ones are not searched",
    ]
    if not found.paths:
        hints = ["the repository tracks no file yet: `git add` what is to be searched"]
    elif not found.question.terms:
        hints = ["the question holds no word to search for: say what the code does, in a few words"]
    listed = "\n".join(f"- {hint}" for hint in hints)
    return f"**Nothing in this repository matches.**\n\n{_searched(found)}\n\n{listed}\n\n{MODEL_HINT}\n"
