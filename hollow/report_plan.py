"""A survey as a plan: what to read and change in order, the tests that cover it, risks, open questions."""

from __future__ import annotations

from hollow.kinds import Kind
from hollow.markdown import code
from hollow.report import alike, asked_words, closing, entries, lately, nothing, place, summary, why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

    from hollow.survey import Hit, Survey

# A longer list is not worked through; the others follow under "in detail".
_STEPS: Final = 6
# The same share as in hollow.report.why, so that a plan and its detail agree on what is busy.
_BUSY: Final = 0.8
_FIX_NEEDS: Final = (
    "**A fix needs somebody to write it.** Without a model nothing was changed; below is a plan. Start a local model "
    "(`ollama serve`, then `ollama pull qwen3.5:9b`) or let a program do it: "
    "`--engine command -- PROGRAM ARG…`."
)


def plan(found: Survey, tests: Mapping[str, Sequence[str]]) -> str:
    """Return the plan; *tests* maps a path to the tests that are likely to cover it."""
    if not found.hits:
        return nothing(found)
    return "\n\n".join([summary(found), *_sections(found, tests)]) + "\n"


def fix(found: Survey, tests: Mapping[str, Sequence[str]]) -> str:
    """Return the plan with the plain word that no fix was made."""
    if not found.hits:
        return f"{_FIX_NEEDS}\n\n{nothing(found)}"
    return "\n\n".join([_FIX_NEEDS, summary(found), *_sections(found, tests)]) + "\n"


def _sections(found: Survey, tests: Mapping[str, Sequence[str]]) -> list[str]:
    steps = [hit for hit in found.hits if hit.kind in {Kind.SOURCE, Kind.CONFIG}][:_STEPS] or list(found.hits[:_STEPS])
    return [
        "## Steps\n\n" + "\n".join([*(_step(hit, found) for hit in steps), *_test_steps(steps, tests), _LAST_STEP]),
        "## Risks\n\n" + _listed(_risks(steps, tests, found)),
        "## Open questions\n\n" + _listed(_questions(steps, found)),
        "## The places in detail",
        *entries(found, shown=4),
        *lately(found.commits),
        *alike(found.similar),
        closing(found),
    ]


_LAST_STEP: Final = "- [ ] Run the whole test suite and read the diff once more as a reviewer would."


def _step(hit: Hit, found: Survey) -> str:
    names = [hit.symbol.name] if hit.symbol else []
    listed = ", ".join(code(name) for name in dict.fromkeys([*names, *hit.symbols]))
    named = f": {listed}" if listed else ""
    return f"- [ ] Read {code(place(hit))}{named}; change it if it is the cause ({why(hit, found)})."


def _test_steps(steps: Sequence[Hit], tests: Mapping[str, Sequence[str]]) -> list[str]:
    covering = {hit.path: tests.get(hit.path, ()) for hit in steps}
    named = list(dict.fromkeys(test for listed in covering.values() for test in listed))
    uncovered = next((path for path, listed in covering.items() if not listed), None)
    missing = [f"- [ ] Add a test for {code(uncovered)}: none was found by name or use."] if uncovered else []
    return [f"- [ ] Extend {code(test)} with a case that fails today." for test in named[:4]] + missing


def _risks(steps: Sequence[Hit], tests: Mapping[str, Sequence[str]], found: Survey) -> list[str]:
    busy = [code(hit.path) for hit in steps if hit.parts.get("churn", 0) >= _BUSY]
    bare = [code(hit.path) for hit in steps if not tests.get(hit.path)]
    close = len(found.hits) > 1 and found.hits[1].score > _BUSY * found.hits[0].score
    said = [
        f"{', '.join(busy)} changed often lately: others may be at work there." if busy else "",
        f"No test was found for {', '.join(bare)}: a mistake would not show." if bare else "",
        "The first places rank closely: the cause may be in the second." if close else "",
    ]
    return [risk for risk in said if risk] or ["None stands out from names, tests and history alone."]


def _questions(steps: Sequence[Hit], found: Survey) -> list[str]:
    seen = {term for hit in steps for term in hit.matched}
    absent = asked_words(found, [term for term in found.question.terms if term not in seen])[:6]
    said = ["What is the smallest input that shows the wanted behaviour, and what happens with it today?"]
    if absent:
        said.append(
            f"These words occur at none of the places above: {', '.join(code(word) for word in absent)}. What is meant?"
        )
    if len({hit.path.rsplit("/", 1)[0] for hit in steps}) > 2:  # noqa: PLR2004 - more than a pair of folders
        said.append("The places lie in several parts of the code: which of them owns this behaviour?")
    return said


def _listed(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
