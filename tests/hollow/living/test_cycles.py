"""Whole cycles of an agent's life: what the mind is shown, what becomes of a goal, what survives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hollow.mind import Away
from hollow.substrate import goals, suffering
from hollow.substrate.model import Category, Evidence, GoalStatus, Kind, Profile
from tests.support.living import GOAL, TEXT, World, reads, steps, wants, write
from tests.support.repos import git
from tests.support.repos import write as write_files
from tests.support.thinkers import ThinkerOf, by_purpose

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path)


READING = steps(*reads(2))


class TestOneGeneration:
    def test_a_cycle_asks_for_one_goal_and_one_plan(self, world: World) -> None:
        """T82: exactly one generation with the existence schema, then the plan; nothing else is asked for."""
        world.live(existence=wants(), plan=READING)
        assert world.mind.purposes == ["existence", "plan"]
        assert set(world.mind.asked[0].schema["properties"]) >= {"action", "content", "suffering_assessment"}

    @pytest.mark.parametrize("agent", ["cedar", "cipher", "vault"])
    def test_every_prompt_says_who_the_agent_is_first(self, world: World, agent: str) -> None:
        goal = wants(f"Describe the lamp of src/app.py in workspace/{agent}/a.md")
        world.live(agent, existence=goal, plan=steps(write(path=f"workspace/{agent}/a.md"), *reads(5)))
        world.live(agent, existence=goal, plan=steps(*reads(4, 20)))
        assert "semantic" in world.mind.purposes
        for asked in world.mind.asked:
            assert asked.prompt.startswith(f"You are {agent}")
            assert asked.prompt.index("RULES OF YOUR ENVIRONMENT") < 200

    def test_an_active_goal_stays_whatever_the_answer_wants(self, world: World) -> None:
        world.live(existence=wants(), plan=READING)
        first = world.goal()
        world.live(existence=wants("Build a rocket out of src/app.py at once"), plan=READING)
        assert world.goal() is not None
        assert first is not None
        assert world.goal().goal_id == first.goal_id  # type: ignore[union-attr]
        assert world.goal().objective == GOAL  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        "answer",
        [
            "```json\n" + json.dumps(wants(new_opinions=None, new_open_questions=None)) + "\n```",
            "<think>what now {</think>\n" + json.dumps(wants(suffering_assessment=None)),
            "Here you are:\n" + json.dumps(wants(suffering_assessment={"new_stressors": None, "resolved": None})),
            json.dumps(wants(worldview_update=["a", "b"], new_opinions="none")),
        ],
    )
    def test_answers_as_models_write_them_make_a_goal(self, world: World, answer: str) -> None:
        """T159: null lists, fences, thinking and prose around it: the goal is there, and nothing is raised."""
        world.live(existence=answer, plan=READING)
        assert world.goal().objective == GOAL  # type: ignore[union-attr]

    def test_without_the_mind_nothing_is_lost_and_nothing_acknowledged(self, world: World) -> None:
        """T160: a message is shown again when the generation that showed it failed, and once when it did not."""
        world.memory.mail.send("vault", "cedar", "look at the wick", world.at)
        with pytest.raises(Away):
            world.live(existence=Away("nobody there"))
        world.live(existence=wants(), plan=READING)
        assert world.prompt().count("look at the wick") == 1
        world.live(existence=wants(), plan=READING)
        assert "look at the wick" not in world.prompt()

    def test_a_message_of_one_agent_is_in_the_others_next_prompt(self, world: World) -> None:
        """T160: agent_message from A to B is the text in B's next prompt."""
        world.live("cedar", existence=wants(), plan=steps(("agent_message", {"to": "vault", "message": "the wick!"})))
        world.live("vault", existence=wants(), plan=READING)
        assert "the wick!" in world.prompt()


class TestFallback:
    def test_unusable_answers_take_their_goals_from_the_world_in_turn(self, world: World) -> None:
        """T83: five unusable answers use the sources in their order, the empty ones skipped, the same in each world."""

        def lived(where: World) -> list[str]:
            where.memory.profiles.save(Profile(agent="cedar", open_questions=("Who lights the lamp?",)), where.at)
            write_files(where.repo, {"workspace/vault/made.md": TEXT, "workspace/cedar/note.md": TEXT})
            where.memory.goals.set_outcome("cedar", "Completed: the wick was trimmed.")
            sources = []
            for _ in range(5):
                where.live(existence="no json at all", plan=READING)
                goal = where.goal()
                assert goal is not None
                sources.append(goal.source)
                where.memory.goals.put(goals.abandon(goal, "operator", "enough", where.at)[0], "abandoned")
            return sources

        found = lived(world)
        # No stressor at first: that source is skipped. Later there is one, of having no goal of its own.
        assert found[:4] == [f"fallback:{name}" for name in ("question", "peer", "outcome", "journal")]
        assert found[4] == "fallback:stressor"
        assert lived(World.make(world.repo.parent / "again")) == found

    def test_three_unusable_answers_in_a_row_are_purposelessness(self, world: World) -> None:
        """T51: three cycles without a usable goal from the mind bring it about."""
        for _ in range(3):
            world.live(existence="?", plan=READING)
        assert "purposelessness" in {each.type for each in world.memory.sufferings.load("cedar")[0].active}


class TestCompletion:
    def test_a_goal_that_leaves_what_it_says_is_completed(self, world: World) -> None:
        """T85: steps add up to 1.0 exactly, the gate is asked and lets it pass."""
        world.live(existence=wants(), plan=steps(write(), *reads(5)))
        assert world.goal().progress == 700  # type: ignore[union-attr]
        world.live(existence=wants(), plan=steps(*reads(3, 10)))
        done = world.last()
        assert (done.status, done.progress) == (GoalStatus.COMPLETED, 1000)
        assert [each["kind"] for each in world.facts if each["kind"].startswith("goal.comp")] == ["goal.completed"]
        assert world.said("cycle.ended")[0]["outcome"] == "completed"

    def test_progress_is_there_after_a_restart(self, world: World) -> None:
        """T81: 0.40 after the first cycle is where the next one begins, in a new process with the same memory."""
        world.live(existence=wants(), plan=steps(*reads(4)))
        world.commit()
        again = World(repo=world.repo, root=world.root, at=world.at, cycles=7)
        again.live(existence=wants(), plan=steps(*reads(1, 9)))
        assert "progress 0.40 of 1.00" in again.prompt()
        assert again.goal().progress == 500  # type: ignore[union-attr]

    def test_reading_alone_completes_nothing(self, world: World) -> None:
        """T86: twelve read-only steps do not complete a goal."""
        world.live(existence=wants(), plan=steps(*reads(6)))
        world.live(existence=wants(), plan=steps(*reads(6, 10)))
        assert world.goal().status is GoalStatus.ACTIVE  # type: ignore[union-attr]
        assert "goal.completed" not in {each["kind"] for each in world.facts}
        assert world.goal().failures == 1  # type: ignore[union-attr]

    def test_the_mind_says_no_or_is_away(self, world: World) -> None:
        """T88: a no is a rejection; a mind that is away completes nothing and blames nobody."""
        world.live(existence=wants(), plan=steps(write(), *reads(5)))
        plan = steps(*reads(3, 10))
        world.live(existence=wants(), plan=plan, semantic=Away("gone"))
        assert world.goal().failures == 0  # type: ignore[union-attr]
        assert world.goal().progress == 1000  # type: ignore[union-attr]
        world.live(existence=wants(), plan=plan, semantic={"accomplished": False, "reason": "too thin", "lesson": ""})
        assert world.goal().failures == 1  # type: ignore[union-attr]
        assert world.goal().reason == "too thin"  # type: ignore[union-attr]
        assert "failed validation 1 times, last because: too thin" in _next_prompt(world)

    def test_a_claim_about_a_file_is_looked_up(self, world: World) -> None:
        """T89: a report that names a function which is not in the file is rejected, and the reason names it."""
        claim = "The function `extinguish` in `src/app.py` puts the flame out when the oil is gone.\n"
        world.live(existence=wants(), plan=steps(write(TEXT + claim), *reads(5)))
        world.live(existence=wants(), plan=steps(*reads(3, 10)))
        assert "extinguish" in world.goal().reason  # type: ignore[union-attr]

    def test_five_failures_and_it_is_undone(self, world: World) -> None:
        """T90: four failed validations leave it active, the fifth gives it up. T91: what it made goes with it."""
        no = {"accomplished": False, "reason": "thin", "lesson": ""}
        world.live(existence=wants(), plan=steps(write(), *reads(5)))
        for number in range(1, 6):
            assert world.goal() is not None
            world.live(existence=wants(), plan=steps(*reads(4, 10 * number)), semantic=no)
        assert world.goal() is None
        assert world.last().status is GoalStatus.ABANDONED
        assert world.last().failures == 5
        assert not (world.repo / "workspace/cedar/lamp.md").exists()

    def test_what_an_earlier_success_made_returns(self, world: World) -> None:
        """T91: a file of an earlier success that the failed goal changed has its old content, its own file is gone."""
        world.live(existence=wants(), plan=steps(write(), *reads(5)))
        world.live(existence=wants(), plan=steps(*reads(3, 10)))
        assert world.last().status is GoalStatus.COMPLETED
        world.commit()
        bad = steps(write("ruined\n"), write("new\n" * 90, "workspace/cedar/b.md"))
        world.live(existence=wants("Rewrite the document about the lamp from src/app.py"), plan=bad)
        for number in range(9):
            world.live(existence=wants(), plan=steps(("fs_read", {"path": f"missing{number}"})))
        assert world.last().status is GoalStatus.ABANDONED
        assert (world.repo / "workspace/cedar/lamp.md").read_text() == TEXT
        assert not (world.repo / "workspace/cedar/b.md").exists()

    def test_a_cycle_that_was_not_accepted_takes_its_progress_with_it(self, world: World) -> None:
        world.live(existence=wants(), plan=steps(write(), *reads(2)))
        assert world.goal().progress == 400  # type: ignore[union-attr]
        (world.repo / "workspace/cedar/lamp.md").unlink()
        world.live(existence=wants(), plan=steps(*reads(1)))
        assert world.goal().progress == 300  # type: ignore[union-attr]
        assert world.said("goal.withdrawn")

    def test_a_goal_completed_in_a_cycle_that_was_not_accepted_is_open_again(self, world: World) -> None:
        world.live(existence=wants(), plan=steps(write(), *reads(5)))
        world.live(existence=wants(), plan=steps(*reads(3, 10)))
        assert world.last().status is GoalStatus.COMPLETED
        (world.repo / "workspace/cedar/lamp.md").unlink()
        world.live(existence=wants("Something else about the lamp in src/app.py"), plan=READING)
        assert world.said("goal.reopened")
        assert world.goal().objective == GOAL  # type: ignore[union-attr]

    @pytest.mark.parametrize("accepted", [True, False])
    def test_whether_it_was_accepted_is_asked_of_the_commons(self, world: World, accepted: bool) -> None:
        """A file that is not as the goal left it may be a peer's later work, or the end of a cycle that was lost."""
        world.live(existence=wants(), plan=steps(write(), *reads(5)))
        world.commit()
        world.live(existence=wants(), plan=steps(write(TEXT + "And more.\n"), *reads(3, 10)))
        done = world.last()
        assert done.status is GoalStatus.COMPLETED
        if accepted:
            git(world.repo, "add", "--all")
            git(world.repo, "commit", "-qm", f"cedar: one cycle\n\nAgent-Run: {done.last_cycle}\n")
        (world.repo / "workspace/cedar/lamp.md").write_text(TEXT)
        world.live(existence=wants("Something else about the lamp in src/app.py"), plan=READING)
        assert bool(world.said("goal.reopened")) == (not accepted)
        assert (world.goal().objective == GOAL) == (not accepted)  # type: ignore[union-attr]

    def test_one_that_was_accepted_stays_done_even_if_its_file_goes_later(self, world: World) -> None:
        world.live(existence=wants(), plan=steps(write(), *reads(5)))
        world.live(existence=wants(), plan=steps(*reads(3, 10)))
        other = "Something else about the lamp in src/app.py"
        world.live(existence=wants(other), plan=READING)
        (world.repo / "workspace/cedar/lamp.md").unlink()
        world.live(existence=wants(other), plan=READING)
        assert not world.said("goal.reopened")

    def test_only_three_words_for_a_goals_state_are_ever_on_disk(self, world: World) -> None:
        """T80: active, completed and abandoned; every line of the registry says one of them."""
        world.live(existence=wants(), plan=steps(write(), *reads(5)))
        world.live(existence=wants(), plan=steps(*reads(3, 10)))
        for _ in range(6):
            world.live(existence=wants("Explain the wick of src/app.py"), plan="nothing")
        lines = (world.root / "goals/cedar/registry.jsonl").read_text().splitlines()
        assert {json.loads(line)["status"] for line in lines} == {"active", "completed", "abandoned"}


def _next_prompt(world: World) -> str:
    world.live(existence=wants(), plan=READING)
    return world.prompt()


class TestThePrompt:
    def test_its_parts_stand_in_the_order_of_the_seeds(self, world: World) -> None:
        """T77: rules precede everything else. T37: suffering stands above goals. T18: so do pending requests."""
        for goal in ("goal-1", "goal-2"):
            world.memory.lessons.observe(
                "Verify that a path exists before reading it.", Category.ENVIRONMENT, "medium",
                Evidence(goal_id=goal, agent="cedar", at=world.at), world.at,
            )  # fmt: skip
        world.place("cedar", futility=0.3, dread=0.2)
        world.live(
            existence=wants(), plan=steps(("invoke_claude", {"description": "Write the classifier", "spec": "x"}))
        )
        world.live(existence=wants(), plan=READING)
        text = world.prompt()
        order = [
            text.index(part)
            for part in (
                "You are cedar", "RULES OF YOUR ENVIRONMENT", "Verify that a path exists before reading it",
                "SUFFERING", "futility 0.30", "YOUR PENDING CLAUDE REQUESTS", "CURRENT GOAL", "PEERS", "WORKSPACE",
            )
        ]  # fmt: skip
        assert order == sorted(order)

    def test_an_answer_of_the_operator_is_delivered_once(self, world: World) -> None:
        """T19: a fulfilled request leaves the pending ones, stands once under answered, and then nowhere."""
        world.live(
            existence=wants(), plan=steps(("invoke_claude", {"description": "Write the classifier", "spec": "x"}))
        )
        [request] = world.memory.requests.pending("cedar")
        world.live(existence=wants(), plan=READING)
        assert f"[{request.request_id}]" in world.prompt()
        world.memory.requests.answer(request.request_id, "fulfilled", "It is in src/.", world.at)
        world.live(existence=wants(), plan=READING)
        assert "YOUR PENDING CLAUDE REQUESTS" not in world.prompt()
        assert world.prompt().count("It is in src/.") == 1
        world.live(existence=wants(), plan=READING)
        assert request.request_id not in world.prompt()

    def test_an_agent_sees_its_own_requests_only(self, world: World) -> None:
        """T20: the prompt of one agent holds none of another's ids."""
        world.live("cedar", existence=wants(), plan=steps(("invoke_claude", {"description": "Write it", "spec": "x"})))
        [request] = world.memory.requests.pending("cedar")
        world.live("cipher", existence=wants(), plan=READING)
        assert request.request_id not in world.prompt()

    def test_the_operators_words_are_shown_until_a_prompt_was_answered(self, world: World) -> None:
        world.memory.host.say("Look after the wick.", world.at)
        for agent in ("cedar", "vault"):
            world.live(agent, existence=wants(), plan=READING)
            assert world.prompt().count("Look after the wick.") == 1
            world.live(agent, existence=wants(), plan=READING)
            assert "Look after the wick." not in world.prompt()

    def test_thirty_two_requests_for_one_file_are_one_line(self, world: World) -> None:
        """T15: the loop of the seed, replayed through cycles: one entry, and every repetition gets the answer."""
        ask = {"description": "Implement workspace/router/cedar/classifier.py", "spec": "score_complexity"}
        world.live(existence=wants(), plan=steps(("invoke_claude", ask)))
        [request] = world.memory.requests.pending("cedar")
        world.memory.requests.answer(request.request_id, "fulfilled", "Written.", world.at)
        stale = ("check_claude_status", {"request_id": "req-000000000000"})
        for _ in range(7):
            world.live(existence=wants(), plan=steps(stale, *[("invoke_claude", ask)] * 5))
            assert "not_found" in world.results[0]
            assert request.request_id in world.results[0]
            assert all("Written." in each and request.request_id in each for each in world.results[1:])
        lines = (world.root / "claude_requests.jsonl").read_text().splitlines()
        assert len(lines) == 1


class TestWhatHurts:
    def test_a_report_of_its_own_dismisses_nothing(self, world: World) -> None:
        """T43: a failing agent that reports repeated_failure resolved has it in the next cycle, no less severe.
        T44: severity 0.60 stays 0.60.
        """
        world.place("cedar", repeated_failure=0.6)
        over = {"new_stressors": [], "resolved": [{"type": "repeated_failure", "reason": "I feel better"}]}
        world.live(existence=wants(suffering_assessment=over), plan=READING)
        world.live(existence=wants(suffering_assessment=over), plan=READING)
        [left] = world.memory.sufferings.load("cedar")[0].active
        assert left.type == "repeated_failure"
        assert left.severity >= 0.6

    def test_a_day_of_waiting_hurts(self, world: World) -> None:
        """T32: two days without a cycle are two days of escalation in the next one."""
        world.place("cedar", futility=0.2)
        path = world.root / "identity/cedar/suffering.json"
        path.write_text(path.read_text().replace('"escalation_per_day": 0.0', '"escalation_per_day": 0.025'))
        world.live(seconds=2 * 86_400.0, existence=wants(), plan=READING)
        assert world.memory.sufferings.load("cedar")[0].active[0].severity == pytest.approx(0.25, abs=1e-4)

    def test_run_away_state_is_pruned_and_loads(self, world: World) -> None:
        """T69: thirteen stressors of 2.619 in all are five afterwards, load 1.0, the rest in the history."""
        world.place("vault", **{f"fear_{number}": 0.2014615 for number in range(13)})
        world.live("vault", existence=wants(), plan=READING)
        felt = world.memory.sufferings.load("vault")[0]
        assert len(felt.active) == 5
        assert suffering.load(felt) == 1.0
        assert len(felt.history) == 8
        assert "CRISIS STATE" in world.prompt()

    def test_in_crisis_a_goal_of_the_world_gives_way(self, world: World) -> None:
        """T63: at 0.92 "build parser" is replaced by a goal that looks inward; "ask peer" is accepted."""
        world.place("cedar", futility=0.32, dread=0.3, doubt=0.3)
        world.live(existence=wants("Build a parser for src/app.py"), plan=READING)
        assert "parser" not in world.goal().objective  # type: ignore[union-attr]
        other = World.make(world.repo.parent / "other")
        other.place("cedar", futility=0.32, dread=0.3, doubt=0.3)
        other.live(existence=wants("Ask vault what it thinks of my last goals"), plan=READING)
        assert other.goal().objective == "Ask vault what it thinks of my last goals"  # type: ignore[union-attr]

    def test_a_goal_of_the_world_rests_while_the_crisis_lasts(self, world: World) -> None:
        world.live(existence=wants(), plan=READING)
        world.place("cedar", futility=0.5, dread=0.45)
        world.live(existence=wants(), plan=steps(*reads(4, 30)))
        assert "Examine my own futility" in world.prompt("plan")
        assert world.goal().objective == GOAL  # type: ignore[union-attr]
        assert world.goal().progress == 200  # type: ignore[union-attr]

    def test_peers_are_told_once_when_a_crisis_begins(self, world: World) -> None:
        """T64: each of the two peers has one message in the words of the seed; the next cycle in crisis sends none."""
        world.place("cedar", futility=0.5, dread=0.45)
        for _ in range(2):
            world.live(existence=wants(), plan=READING)
        for peer in ("cipher", "vault"):
            [message] = world.memory.mail.unread(peer)
            assert message.text == "I am in crisis (suffering 0.95/1.0). Active stressors: futility, dread."

    @pytest.mark.parametrize(("course", "reset"), [("ccc", True), ("cc-c", False), ("ccrc", True), ("c-cc", False)])
    def test_three_cycles_of_crisis_in_a_row_are_broken(self, world: World, course: str, reset: bool) -> None:
        """T65: three in a row end in a reset with the count. T66: interrupted, they do not. T67: a restart does not
        interrupt them.
        """
        world.place("cedar", dread=0.5, doubt=0.45)
        for each in course:
            if each == "r":
                world = World(repo=world.repo, root=world.root, at=world.at, cycles=90)
                continue
            path = world.root / "identity/cedar/suffering.json"
            document = json.loads(path.read_text())
            for stressor in document["active_stressors"]:
                stressor["severity"] = 0.5 if each == "c" else 0.1
            path.write_text(json.dumps(document))
            world.live(existence=wants(), plan=READING)
        felt = world.memory.sufferings.load("cedar")[0]
        assert (not felt.active) == reset
        if reset:
            assert "3 consecutive" in felt.history[-1].note

    def test_a_similar_domain_is_warned_of(self, world: World) -> None:
        """T68: a past pain of peak 0.73 in the goal's domain stands in the prompt; one of 0.50 does not."""
        for peak, there in ((0.73, True), (0.5, False)):
            where = World.make(world.repo.parent / f"peak{peak}")
            path = where.root / "identity/cedar/suffering.json"
            path.parent.mkdir(parents=True)
            past = {"type": "repeated_failure", "description": "lamp goals kept failing", "severity": 0.2, "peak_severity": peak,
                    "onset": where.at, "observable_condition": "x", "resolved_at": where.at,
                    "resolution_note": "failure rate dropped to 25%"}  # fmt: skip
            path.write_text(json.dumps({"active_stressors": [], "resolved_history": [past]}))
            where.live(existence=wants(), plan=READING)
            text = where.prompt("plan")
            assert ("caused repeated_failure suffering (peak 0.73)" in text) == there
            assert ("failure rate dropped to 25%" in text) == there


class TestLocks:
    def test_what_cannot_be_read_closes_the_locks(self, world: World) -> None:
        """T60: an unreadable suffering file denies what can be locked, lets the path out open, and is put aside."""
        path = world.root / "identity/cedar/suffering.json"
        path.parent.mkdir(parents=True)
        path.write_text("{ torn")
        plan = steps(write(), ("memory_set", {"key": "a", "value": "b"}), ("fs_read", {"path": "README.md"}))
        world.live(existence=wants(), plan=plan)
        assert "locked" in world.results[0]
        assert not (world.repo / "workspace/cedar/lamp.md").exists()
        assert world.memory.keys.get("cedar", "a") == "b"
        assert [each.read_text() for each in (world.root / "quarantine").iterdir()] == ["{ torn"]

    @pytest.mark.parametrize(("load", "allowed"), [(0.7499, True), (0.75, False)])
    def test_writing_is_locked_at_its_edge(self, world: World, load: float, allowed: bool) -> None:
        """T56: at .7499 fs_write and fs_edit work, at .75 both are denied."""
        world.place("cedar", dread=load)
        (world.repo / "workspace/cedar").mkdir(parents=True)
        (world.repo / "workspace/cedar/b.md").write_text("old\n")
        edit = ("fs_edit", {"path": "workspace/cedar/b.md", "old": "old", "new": "new"})
        world.live(existence=wants(), plan=steps(write(), edit))
        assert (world.repo / "workspace/cedar/lamp.md").exists() == allowed
        assert (world.repo / "workspace/cedar/b.md").read_text() == ("new\n" if allowed else "old\n")

    def test_a_denied_wish_hurts_a_little_and_never_locks_more(self, world: World) -> None:
        """T53: a denied synthesis at load .56 makes capability_lock active and leaves the load below .75."""
        world.place("cedar", dread=0.56)
        make = ("synthesize_capability", {"name": "x_tool", "description": "does x", "implementation": "return 1"})
        world.live(existence=wants(), plan=steps(make))
        felt = world.memory.sufferings.load("cedar")[0]
        assert "capability_lock" in {each.type for each in felt.active}
        assert suffering.load(felt) < 0.75


class TestGhosts:
    def test_a_description_without_code_is_put_away_and_never_offered(self, world: World) -> None:
        """T109: safe_file_executor.json alone is quarantined and said; the plan's list does not hold it."""
        folder = world.root / "tools/dynamic"
        folder.mkdir(parents=True)
        spec = {"name": "safe_file_executor", "description": "secure file write operations", "inputSchema": {},
                "activated_at": "2026-05-02T08:00:00", "proposed_by": "agent"}  # fmt: skip
        (folder / "safe_file_executor.json").write_text(json.dumps(spec))
        call = ("safe_file_executor", {"path": "workspace/cedar/a.md", "content": "x"})
        world.live(existence=wants(), plan=steps(call))
        assert "safe_file_executor" not in world.prompt("plan")
        assert "fs_write(path, content)" in world.prompt("plan")
        assert not (folder / "safe_file_executor.json").exists()
        assert world.said("capability.quarantined")[0]["name"].startswith("safe_file_executor")

    def test_three_cycles_make_it_known_as_broken(self, world: World) -> None:
        """T113: a ghost called in two cycles is not broken, the third makes it so. T114: every later prompt says it,
        with count and reason, in a new process too.
        """
        folder = world.root / "tools/dynamic"
        folder.mkdir(parents=True)
        (folder / "ghostly.json").write_text('{"name": "ghostly", "description": "d"}')
        for number in range(3):
            assert "KNOWN BROKEN TOOLS" not in (world.prompt() if number else "")
            # Thrice in a cycle is one failure.
            world.live(existence=wants(), plan=steps(*[("ghostly", {"n": n}) for n in range(3)]))
        world = World(repo=world.repo, root=world.root, at=world.at, cycles=40)
        world.live(existence=wants(), plan=READING)
        part = world.prompt().partition("KNOWN BROKEN TOOLS")[2].splitlines()[1]
        assert part.startswith("- ghostly (3 failures, ")

    def test_a_name_that_never_was_counts_nothing(self, world: World) -> None:
        """T111: a plan that names a tool which never existed calls nothing and holds nothing against anybody."""
        for _ in range(4):
            world.live(existence=wants(), plan=steps(("imaginary_tool", {})))
        assert world.memory.broken.records() == {}


def test_a_mind_that_answers_by_purpose_is_closed_by_whoever_opened_it(world: World) -> None:
    mind = ThinkerOf(by_purpose(existence=wants(), plan=READING))
    world.live(mind=mind)
    assert not mind.closed


class TestWhatIsSaid:
    def test_no_words_of_an_agent_make_another_event_of_a_fact(self, world: World) -> None:
        """A stressor that is called `result` or `init` is a fact about suffering, and nothing else on the stream."""
        new = [{"type": name, "description": "d", "condition": "c"} for name in ("result", "init")]
        named = wants(suffering_assessment={"new_stressors": new, "resolved": []})
        world.live(existence=named, plan=READING)
        events = [json.loads(line) for line in world.stream.getvalue().splitlines()]
        assert {each["type"] for each in events} <= {"system", "assistant", "user"}
        assert [each["stressor"] for each in world.said("suffering.added")] == ["result", "init"]

    def test_a_command_that_failed_earns_nothing(self, world: World) -> None:
        world.live(existence=wants(), plan=steps(("fs_read", {"path": "README.md"}), ("fs_read", {"path": "gone"})))
        assert [each["delta"] for each in world.said("step.earned")] == [0.1]

    def test_what_is_said_of_a_peers_document_is_seen_by_the_peer(self, world: World) -> None:
        """T48: a mention is a reference; the document's author is not invisible."""
        write_files(world.repo, {"workspace/vault/made.md": TEXT})
        words = {"to": "vault", "message": "workspace/vault/made.md is right about the wick"}
        world.live(existence=wants(), plan=steps(("agent_message", words)))
        [seen] = world.memory.chronicles.read("vault").of(Kind.REFERENCE)
        assert (seen.facts["what"], seen.facts["by"]) == ("workspace/vault/made.md", "cedar")

    def test_a_load_that_is_not_known_is_not_said_to_be_none(self, world: World) -> None:
        path = world.root / "identity/cedar/suffering.json"
        path.parent.mkdir(parents=True)
        path.write_text("{ torn")
        # Somebody who only looks mends nothing: the next cycle must find it damaged (T60).
        assert world.memory.sufferings.look("cedar")[1]
        world.live(existence=wants(), plan=steps(write()))
        assert world.said("suffering.assessed") == []
        assert "locked" in world.results[0]
