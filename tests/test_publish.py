"""A run's slash commands are in the checkout while it lives, fit the budget, and leave with it and nothing else."""

from __future__ import annotations

import os

import pytest
import yaml

from agents import commands, locks, publish
from agents.errors import HostError, OperatorError
from agents.layout import COMMANDS
from agents.lockorder import Rank
from tests.support.boxes import child, claimed, every_step, make_context, planned, porcelain, together, until

LEFT: list = []
"""Publications that a dead supervisor left: kept here, since a forgotten one would undo itself."""


def leave(context, made):
    """Publish the commands of *made* and never come back."""
    LEFT.append(publish.published(context.layout, made.meta.short_id, made.commands))
    LEFT[-1].__enter__()


@pytest.fixture
def context(tmp_path):
    return make_context(tmp_path)[0]


def front(path):
    return yaml.safe_load(path.read_text().split("---\n")[1])


def test_the_commands_are_there_while_the_run_lives_and_gone_after(context):
    """T128: T138: their names end in the id, their texts name what they must."""
    made, _owner = claimed(context)
    with publish.published(context.layout, "a1b2", made.commands) as folder:
        assert folder == context.layout.root / COMMANDS / "run_a1b2"
        names = {path.name for path in folder.iterdir()}
        assert names == {f"{verb}_a1b2.md" for verb in ("scout", "plan", "summarize", "merge", "apply")}
        for path in folder.iterdir():
            assert {"description", "disable-model-invocation", "allowed-tools", "argument-hint"} <= front(path).keys()
            assert "$ARGUMENTS" in path.read_text()
            assert str(context.store.box(made.meta.run_name).outbox) in path.read_text()
        assert porcelain(context.layout.root) == ""
    assert not folder.exists()


def test_what_only_humans_may_do_no_model_may_invoke(context):
    """T129: on disk, as the other program reads it."""
    made, _owner = claimed(context)
    with publish.published(context.layout, "a1b2", made.commands) as folder:
        guarded = {path.name: front(path)["disable-model-invocation"] for path in folder.iterdir()}
    assert {name for name, guard in guarded.items() if guard is True} == {"merge_a1b2.md", "apply_a1b2.md"}
    assert {guard for name, guard in guarded.items() if name.startswith(("scout", "plan", "summarize"))} == {False}


def test_the_commands_go_when_the_run_fails(context):
    made, _owner = claimed(context)
    with pytest.raises(ZeroDivisionError), publish.published(context.layout, "a1b2", made.commands):
        raise ZeroDivisionError
    assert not context.layout.commands("a1b2").exists()


def test_fifty_live_runs_fit_the_budget_and_one_too_many_is_told(context):
    """T130: descriptions of 80 characters at most, the total below the budget, then a sentence instead of a start."""
    held = []

    def live(number):
        short_id = f"{number:04x}"
        made = planned(context, short_id)
        context.store.reserve(short_id, made.meta.run_name)
        held.append(publish.published(context.layout, short_id, made.commands))
        held[-1].__enter__()

    for number in range(50):
        live(number)
    described = [front(path)["description"] for path in (context.layout.root / COMMANDS).glob("run_*/*.md")]
    assert len(described) == 250
    assert max(map(len, described)) <= commands.LONGEST_DESCRIPTION
    assert 0 < publish.in_use(context.layout) <= commands.BUDGET

    def flood():
        for number in range(50, 500):
            live(number)

    with pytest.raises(OperatorError, match="characters of context"):
        flood()
    assert publish.in_use(context.layout) <= commands.BUDGET
    refused = f"{50 + len(held) - 51:04x}"
    assert not context.layout.commands(refused).exists()
    assert not list(context.layout.data.glob(".new-*"))
    for each in held[:-1]:
        each.__exit__(None, None, None)
    assert publish.in_use(context.layout) == 0


def test_starts_at_once_cannot_exceed_the_budget_together(context):
    """T130: the look and the act are one, whoever else starts."""
    filler = context.layout.root / COMMANDS / "run_ffff"
    filler.mkdir(parents=True)
    room = commands.cost(planned(context, "0001").commands) * 2
    text = "x" * (commands.BUDGET - room - len("scout_ffff"))
    (filler / "scout_ffff.md").write_text(f"---\ndescription: {text}\n---\n")
    done = context.layout.data / "done"
    done.mkdir()

    def start(number):
        try:
            with publish.published(context.layout, f"{number:04x}", planned(context, f"{number:04x}").commands):
                (done / f"in-{number}").touch()
                until(lambda: len(list(done.iterdir())) == 6)
        except OperatorError:
            (done / f"out-{number}").touch()

    together([lambda number=number: start(number) for number in range(6)])
    assert len(list(done.glob("in-*"))) == 2


def test_a_killed_start_leaves_nothing_in_gits_sight(context):
    """T121: C04: K04: dead before every system call in turn; what it made is collected later."""
    made, _owner = claimed(context)

    def start():
        leave(context, made)

    for _ in every_step(start, stride=5):
        assert porcelain(context.layout.root) == ""
        folder = context.layout.commands("a1b2")
        assert not folder.exists() or len(list(folder.iterdir())) == 5
        context.store.deactivate("a1b2")
        publish.collect(context.layout, {})
        assert not folder.exists()


def test_a_killed_removal_is_finished_by_the_next(context):
    """C12: deleting is idempotent."""
    made, _owner = claimed(context)
    context.store.deactivate("a1b2")
    for _ in every_step(lambda: publish.remove(context.layout, "a1b2"), stride=2):
        publish.remove(context.layout, "a1b2")
        assert not context.layout.commands("a1b2").exists()
        leave(context, made)


class TestCollect:
    """Garbage collection takes what is ours and dead."""

    def publish_all(self, context, short_ids):
        for short_id in short_ids:
            made, _owner = claimed(context, short_id)
            leave(context, made)

    def test_of_two_runs_the_live_one_keeps_its_commands(self, context):
        """T142: folders of runs that are not ACTIVE go."""
        self.publish_all(context, ["aaaa", "bbbb"])
        context.store.deactivate("aaaa")
        assert publish.collect(context.layout, context.store.active()) == ["aaaa"]
        assert not context.layout.commands("aaaa").exists()
        assert len(list(context.layout.commands("bbbb").iterdir())) == 5

    def test_a_run_that_started_after_the_look_keeps_its_commands(self, context):
        """K05: the list of live runs is older than its folder."""
        before = context.store.active()
        self.publish_all(context, ["aaaa"])
        assert publish.collect(context.layout, before) == []
        assert context.layout.commands("aaaa").exists()

    @pytest.mark.parametrize(
        "place",
        [
            "run_cafe/scout_cafe.md",
            "mine/run_aaaa.md",
            "run_/x.md",
            "run_AAAA/scout_AAAA.md",
            "run_aaaa.md",
            "deploy.md",
        ],
    )
    def test_what_is_not_ours_stays(self, context, place):
        """T142: K03: an id that was never given, another form, the operator's own commands."""
        path = context.layout.root / COMMANDS / place
        path.parent.mkdir(parents=True)
        path.write_text("mine")
        assert publish.collect(context.layout, {}) == []
        assert path.read_text() == "mine"

    @pytest.mark.parametrize(
        "name", ["notes.md", "scout_bbbb.md", "scout_aaaa.md.bak", "deep/scout_aaaa.md", ".hidden"]
    )
    def test_a_file_of_the_operator_in_our_folder_stays(self, context, name):
        """T142: K03: only files by the names that we give are removed."""
        self.publish_all(context, ["aaaa"])
        context.store.deactivate("aaaa")
        path = context.layout.commands("aaaa") / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
        publish.collect(context.layout, {})
        assert path.read_text() == "mine"
        assert not (context.layout.commands("aaaa") / "scout_aaaa.md").exists()

    def test_a_link_in_the_place_of_our_folder_is_not_followed(self, context, tmp_path):
        """K03: what it leads to is somebody's own."""
        claimed(context, "aaaa")
        context.store.deactivate("aaaa")
        (tmp_path / "own").mkdir()
        (tmp_path / "own" / "scout_aaaa.md").write_text("mine")
        folder = context.layout.commands("aaaa")
        folder.parent.mkdir(parents=True)
        folder.symlink_to(tmp_path / "own")
        publish.collect(context.layout, {})
        assert (tmp_path / "own" / "scout_aaaa.md").read_text() == "mine"

    def test_without_any_folder_there_is_nothing_to_do(self, context):
        assert publish.collect(context.layout, {}) == []
        publish.remove(context.layout, "a1b2")


@pytest.mark.parametrize("link", [".claude", COMMANDS])
def test_a_folder_that_leads_out_of_the_repository_is_refused(context, tmp_path, link):
    """K03: and nothing is made where it leads to."""
    made, _owner = claimed(context)
    outside = tmp_path / "outside"
    outside.mkdir()
    path = context.layout.root / link
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(outside)
    with pytest.raises(HostError, match="leads out"), publish.published(context.layout, "a1b2", made.commands):
        pass
    assert list(outside.iterdir()) == []


def test_a_link_inside_the_repository_is_fine(context):
    (context.layout.root / "tools").mkdir()
    (context.layout.root / ".claude").symlink_to("tools")
    made, _owner = claimed(context)
    with publish.published(context.layout, "a1b2", made.commands) as folder:
        assert len(list(folder.iterdir())) == 5


def test_a_folder_with_files_of_the_operator_is_not_replaced(context):
    """K03: the start fails with a sentence, and no staging folder is left."""
    made, _owner = claimed(context)
    own = context.layout.commands("a1b2") / "mine.md"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    with pytest.raises(HostError, match="slash commands"), publish.published(context.layout, "a1b2", made.commands):
        pass
    assert own.read_text() == "mine"
    assert not list(context.layout.data.glob(".new-*"))


def test_a_pipe_among_the_commands_is_not_waited_for(context):
    folder = context.layout.commands("a1b2")
    folder.mkdir(parents=True)
    os.mkfifo(folder / "scout_a1b2.md")
    assert publish.in_use(context.layout) == 0


def test_a_start_waits_for_the_repositorys_lock(context):
    made, _owner = claimed(context)
    with locks.Lock(context.layout.repo_lock, Rank.REPO) as lock:

        def start():
            leave(context, made)

        with child(start):
            assert not context.layout.commands("a1b2").exists()
            lock.release()
            until(context.layout.commands("a1b2").exists, "the commands")
