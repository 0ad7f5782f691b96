"""The mind without a model: a survey of the repository, said step by step, as a report for the kind of run."""

from __future__ import annotations

import sqlite3

from hollow import report
from hollow.benches import find
from hollow.gitread import GitReadError
from hollow.mind import Answer
from hollow.report_benchmark import benchmark
from hollow.report_plan import fix, plan
from hollow.report_review import review
from hollow.reviewing import reviewed
from hollow.survey import Survey, survey
from hollow.tracked import snapshot
from hollow.usage import covering_tests, uses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final, TypeVar

    from hollow.mind import Assignment
    from hollow.stream import Talk

    _Found = TypeVar("_Found")

_TELL_EVERY: Final = 4000
"""Files read between two words of progress: a first survey of a large repository must not look dead."""
_COVERED: Final = 6
"""Places whose tests are looked up for a plan."""


class Reflex:
    """Answers without a model: deterministic, the same state and question give the same report (design, section 10)."""

    name: str = "reflex"
    model: str | None = None
    acts: bool = False

    def answer(self, assignment: Assignment, talk: Talk) -> Answer:
        """Return the report on *assignment*; every step is said on *talk*, and a failure is an answer too."""
        work = _WORK.get(assignment.run_type, _scout)
        try:
            text = work(assignment, talk)
        # What a repository or a disk can cause. A fault of ours is left to the cycle, which tells it as one.
        except (GitReadError, OSError, sqlite3.Error, ValueError, RecursionError) as why:
            sentence = f"The survey of this repository failed: {' '.join(str(why).split()) or type(why).__name__}"
            return Answer(text=sentence.rstrip(".") + ".", subtype="error_during_execution")
        talk.say(text)
        return Answer(text=text)


def _say_step(
    talk: Talk, name: str, arguments: dict[str, Any], work: Callable[[], _Found], told: Callable[[_Found], str]
) -> _Found:
    """Do *work* as the tool call *name*: announced before, its outcome said after, also where it fails."""
    call = talk.call(name, arguments)
    try:
        found = work()
    # Broad, because whatever went wrong, a call that was announced must have an outcome; it is raised again.
    except Exception as why:
        talk.outcome(call, str(why), is_error=True)
        raise
    talk.outcome(call, told(found))
    return found


def _surveyed(assignment: Assignment, talk: Talk) -> Survey:
    told = _Progress(talk)
    found = _say_step(
        talk,
        "Survey",
        {"question": assignment.task},
        lambda: survey(assignment.repo, assignment.index, assignment.task, progress=told),
        lambda found: "\n".join([f"{len(found.paths)} files, {found.read} read anew", *map(report.place, found.hits)]),
    )
    # History was read by the survey; said as a step, so that the log shows where the report has it from.
    if found.hits:
        call = talk.call("GitLog", {"paths": [hit.path for hit in found.hits[:5]]})
        talk.outcome(call, "\n".join(f"{one.oid[:8]} {one.date} {one.subject}" for one in found.commits))
    return found


class _Progress:
    """Says how far the reading is, now and then."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._told = 0

    def __call__(self, done: int, total: int) -> None:
        if done - self._told >= _TELL_EVERY:
            self._told = done
            self._talk.say(f"Read {done} of {total} files for the index.")


def _scout(assignment: Assignment, talk: Talk) -> str:
    return report.scout(_surveyed(assignment, talk))


def _plan(assignment: Assignment, talk: Talk) -> str:
    found = _surveyed(assignment, talk)
    return plan(found, _tests_of(assignment, found, talk))


def _fix(assignment: Assignment, talk: Talk) -> str:
    found = _surveyed(assignment, talk)
    return fix(found, _tests_of(assignment, found, talk))


def _tests_of(assignment: Assignment, found: Survey, talk: Talk) -> dict[str, list[str]]:
    """Path to the tests that are likely to cover it, for the first places."""
    hits = found.hits[:_COVERED]
    # The bare name is what a test writes; three a file, or a file of many definitions would ask for all others' uses.
    names = {hit.path: [name.rsplit(".", 1)[-1] for name in hit.symbols[:3]] for hit in hits}
    asked = [name for listed in names.values() for name in listed]
    mentions = _say_step(
        talk, "Grep", {"words": asked}, lambda: uses(assignment.repo, asked), lambda lines: f"{len(lines)} lines"
    )
    return {
        path: covering_tests(path, found.paths, [use for use in mentions if any(name in use.text for name in listed)])
        for path, listed in names.items()
    }


def _review(assignment: Assignment, talk: Talk) -> str:
    seen = _say_step(
        talk,
        "GitDiff",
        {"task": assignment.task},
        lambda: reviewed(assignment.repo, assignment.task),
        lambda seen: "\n".join([seen.change.title, *(file.path for file in seen.change.files)]),
    )
    return review(seen)


def _benchmark(assignment: Assignment, talk: Talk) -> str:
    found = _surveyed(assignment, talk)
    existing = _say_step(
        talk,
        "Ls",
        {"what": "benchmarks"},
        lambda: find(snapshot(assignment.repo)),
        lambda listed: "\n".join(f"{bench.path}:{bench.line} {bench.name}" for bench in listed),
    )
    return benchmark(found, existing)


_WORK: Final = {"scout": _scout, "plan": _plan, "fix": _fix, "review": _review, "benchmark": _benchmark}
