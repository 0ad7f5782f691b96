"""The operator's task as a goal: rules and pain in the prompt, locks on the tools, and a gate for the report."""

from __future__ import annotations

import io
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from hollow.living import assigned
from hollow.memory.memory import Memory
from hollow.mind import Answer, Assignment, Away
from hollow.prompts import opening, system_prompt
from hollow.stream import Talk
from hollow.substrate.model import Category, Evidence, GoalStatus, Kind
from hollow.tools import toolbox_of
from tests.support.repos import make_repo
from tests.support.thinkers import ThinkerOf, by_purpose

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hollow.mind import Thinker

GOOD = "The flame is kept in src/app.py:1, where `light` returns one. " * 4


class Mind:
    """Gives its reports one after the other, and remembers what it was asked with."""

    name, model, acts = "ollama", "m", True

    def __init__(self, *reports: str, act: Callable[[Assignment, Talk], None] | None = None, turns: int = 2) -> None:
        self.reports, self.asked, self._act, self._turns = list(reports), [], act, turns

    def answer(self, assignment: Assignment, talk: Talk) -> Answer:
        self.asked.append(assignment)
        if self._act:
            self._act(assignment, talk)
        text = self.reports.pop(0)
        return Answer(
            text=text, turns=self._turns, subtype="error_during_execution" if text.startswith("!") else "success"
        )


class Place:
    """A repository, a memory, and one task after the other."""

    def __init__(self, folder: Path) -> None:
        self.repo = make_repo(folder / "repo", {"src/app.py": "def light():\n    return 1\n", "README.md": "# Lamp\n"})
        self.state = folder / "hollow"
        self.memory = Memory(self.state)

    def do(
        self, mind: Any, judge: Thinker | None = None, *, run_type: str = "scout", agent: str = "cedar", **more: Any
    ) -> Answer:
        self.out = io.BytesIO()
        talk = Talk(self.out, session_id="s", model="m")
        asked = Assignment(
            task="Where is the flame kept?",
            run_type=run_type,
            agent=agent,
            repo=self.repo,
            index=self.state / "index",
            **more,
        )
        return assigned.answer(
            asked,
            mind,
            state=self.state,
            run="run-1",
            substrate="",
            talk=talk,
            judge=(lambda: judge) if judge else None,
        )

    def said(self, kind: str) -> list[dict[str, Any]]:
        events = [json.loads(line) for line in self.out.getvalue().splitlines()]
        return [each for each in events if each.get("kind") == kind]

    def hurt(self, agent: str, severity: float) -> None:
        path = self.state / "identity" / agent / "suffering.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        stressor = {"type": "dread", "description": "d", "severity": severity, "observable_condition": "c", "onset": time.time(),
                    "escalation_per_day": 0.0}  # fmt: skip
        path.write_text(json.dumps({"active_stressors": [stressor]}))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def verdicts(*answers: Any) -> ThinkerOf:
    return ThinkerOf(by_purpose(semantic=list(answers)))


YES = {"accomplished": True, "reason": "It is said where.", "lesson": None}
NO = {"accomplished": False, "reason": "It does not say who lights it.", "lesson": None}


class TestTheGate:
    def test_a_report_that_passes_completes_the_goal(self, place: Place) -> None:
        found = place.do(Mind(GOOD), verdicts(YES))
        assert found.text == GOOD
        [goal] = place.memory.goals.recent("cedar", 5)
        assert (goal.status, goal.source, goal.objective) == (
            GoalStatus.COMPLETED,
            "operator",
            "Where is the flame kept?",
        )
        assert [place.said(f"goal.{each}")[0]["goal_id"] for each in ("created", "completed")] == [goal.goal_id] * 2
        assert place.memory.chronicles.read("cedar").of(Kind.GOAL_COMPLETED)

    def test_a_report_that_fails_is_given_back_with_the_reason(self, place: Place) -> None:
        mind = Mind("It is somewhere.", GOOD)
        found = place.do(mind, verdicts(NO, YES))
        assert found.text == GOOD
        assert found.turns == 4
        assert mind.asked[1].rejected == ("It is somewhere.", NO["reason"])
        assert NO["reason"] in opening(mind.asked[1])
        assert "Where is the flame kept?" in opening(mind.asked[1])
        assert place.said("goal.gate_failed")[0]["reason"] == NO["reason"]

    def test_three_reports_are_judged_at_most_and_the_last_says_what_is_held_against_it(self, place: Place) -> None:
        mind = Mind("one", "two", "three", "four")
        found = place.do(mind, verdicts(NO))
        assert found.text.startswith("three\n\n> The completion gate did not let this pass (semantic): It does not say")
        assert len(mind.asked) == assigned.ROUNDS
        assert place.memory.goals.recent("cedar", 1)[0].status is GoalStatus.ABANDONED

    def test_the_turns_of_all_rounds_are_the_runs(self, place: Place) -> None:
        mind = Mind("one", "two", "three", turns=10)
        place.do(mind, verdicts(NO), max_turns=15)
        assert [each.max_turns for each in mind.asked] == [15, 5]

    @pytest.mark.parametrize("answer", [Away("gone"), "no json", {"accomplished": "perhaps"}])
    def test_a_judge_who_does_not_judge_stops_nobody(self, place: Place, answer: Any) -> None:
        """T88: it completes nothing, and the report is the operator's all the same."""
        mind = Mind(GOOD)
        assert place.do(mind, verdicts(answer)).text == GOOD
        assert place.memory.goals.recent("cedar", 1)[0].status is GoalStatus.ABANDONED

    def test_a_citation_that_is_false_is_found_before_the_judge_is_asked(self, place: Place) -> None:
        judge = verdicts(YES)
        mind = Mind("It is in src/lamp.py:9, which keeps it.", GOOD)
        assert place.do(mind, judge).text == GOOD
        assert "src/lamp.py" in mind.asked[1].rejected[1]
        assert len(judge.asked) == 1

    @pytest.mark.parametrize("symbol", ["PASSWORD", "NOTHING_OF_THE_KIND"])
    def test_the_gate_tells_nothing_of_a_file_that_is_closed(self, place: Place, symbol: str) -> None:
        """Whatever is claimed of it, the answer is the same: it cannot be asked what stands in there."""
        (place.repo / "secrets.yml").write_text("PASSWORD: x\n")
        mind = Mind(f"The constant `{symbol}` in `secrets.yml` decides.", GOOD)
        place.do(mind, verdicts(YES))
        assert mind.asked[1].rejected[1].startswith("secrets.yml is cited, but there is no file")

    def test_without_a_judge_what_is_cited_is_looked_up_and_nothing_more(self, place: Place) -> None:
        assert (
            place.do(Mind("It is in src/lamp.py:9, which keeps it.")).text == "It is in src/lamp.py:9, which keeps it."
        )
        assert place.memory.goals.recent("cedar", 1)[0].status is GoalStatus.ABANDONED

    def test_a_failed_run_is_an_abandoned_goal(self, place: Place) -> None:
        found = place.do(Mind("!The model is away."), verdicts(YES))
        assert found.is_error
        assert place.memory.goals.recent("cedar", 1)[0].reason == "!The model is away."

    def test_the_judges_prompt_begins_with_who_the_agent_is(self, place: Place) -> None:
        judge = verdicts(YES)
        place.do(Mind(GOOD), judge, agent="cipher", run_type="review")
        assert judge.asked[0].prompt.startswith("You are cipher")
        assert judge.closed

    def test_what_the_judge_learned_is_a_candidate(self, place: Place) -> None:
        lesson = {
            "category": "patterns",
            "text": "Name the line where a thing is kept, not the folder.",
            "confidence": "high",
        }
        place.do(Mind(GOOD), verdicts({**YES, "lesson": lesson}))
        assert [each.text for each in place.memory.lessons.candidates()] == [lesson["text"]]


class TestTheEnvironment:
    def test_rules_and_pain_stand_on_top_of_the_prompt(self, place: Place) -> None:
        """T77: what was learned precedes everything but the agent's name."""
        for goal in ("a", "b"):
            seen = Evidence(goal_id=goal, agent="cedar", at=1.0)
            place.memory.lessons.observe(
                "Verify that a path exists before reading it.", Category.PATTERNS, "low", seen, 1.0
            )
        place.hurt("cedar", 0.4)
        mind = Mind(GOOD)
        place.do(mind, verdicts(YES))
        text = system_prompt(mind.asked[0])
        marks = [
            text.index(each)
            for each in ("You are cedar", "RULES OF YOUR ENVIRONMENT", "Verify that a path", "dread 0.40", "\nReport\n")
        ]
        assert marks == sorted(marks)

    def test_a_calm_agent_that_has_learned_nothing_has_the_prompt_of_old(self, place: Place) -> None:
        mind = Mind(GOOD)
        place.do(mind, verdicts(YES))
        plain = Assignment(task="t", run_type="scout", agent="cedar", repo=place.repo, index=place.repo)
        assert system_prompt(mind.asked[0]) == system_prompt(plain)

    @pytest.mark.parametrize(("load", "locked"), [(0.7499, False), (0.75, True)])
    def test_its_load_locks_the_tools_that_write(self, place: Place, load: float, locked: bool) -> None:
        """T56: from .75 on EditFile and WriteFile are closed to a task as well, and no byte changes."""
        place.hurt("vault", load)

        def act(assignment: Assignment, talk: Talk) -> None:
            box = toolbox_of(assignment, talk)
            for name, arguments in (
                ("WriteFile", {"path": "new.txt", "content": "x"}),
                ("EditFile", {"path": "README.md", "old_text": "Lamp", "new_text": "Oil"}),
            ):
                outcome = box.call(name, arguments)
                assert outcome.is_error == locked
                assert ("is locked: your suffering load is 0.75" in outcome.content) == locked

        place.do(Mind(GOOD, act=act), verdicts(YES), run_type="fix", agent="vault")
        assert (place.repo / "new.txt").exists() == (not locked)
        assert (place.repo / "README.md").read_text() == ("# Lamp\n" if locked else "# Oil\n")

    def test_what_it_suffers_is_said_and_time_counts(self, place: Place) -> None:
        place.hurt("cedar", 0.4)
        place.do(Mind(GOOD), verdicts(YES))
        [said] = place.said("suffering.assessed")
        assert (said["agent"], said["load"], said["band"]) == ("cedar", 0.4, "present")

    def test_tasks_that_fail_again_and_again_hurt(self, place: Place) -> None:
        """T45: more than four failures and more than half of them: repeated_failure is active."""
        for _ in range(5):
            place.do(Mind("one", "two", "three"), verdicts(NO))
        assert "repeated_failure" in {each.type for each in place.memory.sufferings.load("cedar")[0].active}


class TestWithoutAJudge:
    def test_a_change_that_nobody_made_completes_nothing_and_eases_nothing(self, place: Place) -> None:
        """T86: a plan for a fix is no fix; what nobody has judged is neither relief nor pain."""
        place.do(Mind(GOOD), run_type="fix", agent="vault")
        assert place.memory.goals.recent("vault", 1)[0].status is GoalStatus.ABANDONED
        assert place.memory.chronicles.read("vault").happenings == ()

    def test_a_search_is_what_it_is_and_eases_nothing(self, place: Place) -> None:
        place.do(Mind(GOOD))
        assert place.memory.goals.recent("cedar", 1)[0].status is GoalStatus.COMPLETED
        assert place.memory.chronicles.read("cedar").happenings == ()
