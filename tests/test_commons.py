"""The branch of what the agents have made: where cycles begin, what a patch of a whole goal is, what is taken in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agents import airlock, commons, cycles, plan
from agents.cleanroom import Change, CleanRoom
from agents.context import prepare
from agents.engines import registry
from agents.errors import OperatorError
from agents.events import Fact, Progress
from agents.plan import Ask
from essentials import records
from tests.support.boxes import every_step, scene, together
from tests.support.world import context_of, git

if TYPE_CHECKING:
    from pathlib import Path

    from agents.model import RunMeta

BRANCH = "agent-box/commons"


def meta_of(context, agent: str = "cedar", short_id: str = "a1b2", start: str | None = None) -> RunMeta:
    """The envelope of a cycle of *agent* that begins with *start*."""
    ask = Ask(run_type="cycle", task="one cycle", agent=agent, start=start)
    seen = scene(context, short_id.ljust(32, "0"), "reflex")
    return plan.plan_run(ask, seen, context.config, registry.engine("hollow"), short_id).meta


class Shop:
    """A repository, and cycles that leave files without any agent."""

    def __init__(self, repo: Path) -> None:
        self.repo = repo
        self.context = context_of(repo)
        prepare(self.context)

    def again(self) -> None:
        """Look at the repository anew, after HEAD has moved."""
        self.context = context_of(self.repo)

    def commit(self, message: str = "more", /, **changes: str | None) -> str:
        """Commit *changes* (path with ``__`` for a slash and ``_md`` for the ending) as the operator."""
        for name, text in changes.items():
            path = self.repo / name.replace("__", "/").replace("_md", ".md")
            if text is None:
                git(self.repo, "rm", "-q", str(path))
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        git(self.repo, "add", "-A")
        git(self.repo, "commit", "-qm", message)
        self.again()
        return git(self.repo, "rev-parse", "HEAD").strip()

    def cycle(self, meta: RunMeta, goal: str | None = "goal-1", /, **changes: str | None) -> str | None:
        """Bring a cycle that left *changes* to the commons."""
        room = CleanRoom.make(self.context.layout.staging / f"room-{meta.short_id}", self.context.repo)
        return commons.accept(self.context, room, meta, self.tree(room, meta.airlock_base, **changes), goal)

    def tree(self, room: CleanRoom, base: str, **changes: str | None) -> str:
        """The tree that *changes* make of *base*."""
        made = []
        for name, text in changes.items():
            path = name.replace("__", "/").replace("_md", ".md").encode()
            oid = room.output("hash-object", "-w", "--stdin", stdin=(text or "").encode()).decode().strip()
            made.append(Change(path, "", "100644" if text is not None else "000000", "", oid))
        return room.with_changes(base, made)

    def files(self, ref: str = BRANCH) -> dict[str, str]:
        """What *ref* holds in the agents' folders."""
        names = git(self.repo, "ls-tree", "-r", "--name-only", ref, "--", *commons.OWN).splitlines()
        return {name: git(self.repo, "show", f"{ref}:{name}") for name in names}


@pytest.fixture
def shop(repo):
    return Shop(repo)


# --- Where a cycle begins ---------------------------------------------------------------------------------------------


def test_the_first_cycle_makes_the_branch_at_head_and_nothing_else_moves(shop):
    head = git(shop.repo, "rev-parse", "HEAD").strip()
    assert commons.begin(shop.context) == head == git(shop.repo, "rev-parse", BRANCH).strip()
    assert git(shop.repo, "status", "--porcelain", "--branch") == "## main\n"
    assert commons.begin(shop.context) == head


def test_a_cycle_begins_with_what_the_others_have_left(shop):
    start = commons.begin(shop.context)
    left = shop.cycle(meta_of(shop.context, start=start), workspace__cedar__a_md="found it\n")
    assert commons.begin(shop.context) == left != start
    assert shop.files() == {"workspace/cedar/a.md": "found it\n"}


def test_the_branch_follows_head_and_keeps_what_is_its_own(shop):
    first = meta_of(shop.context, start=commons.begin(shop.context))
    shop.cycle(first, workspace__cedar__a_md="a\n", design__plan_md="agents\n", design__old_md="old\n")
    head = shop.commit(shop__db_py="def connect(): ...\n", design__plan_md="operator\n", design__new_md="new\n")
    start = commons.begin(shop.context)
    assert git(shop.repo, "rev-parse", f"{start}^2").strip() == head
    assert shop.files() == {
        "workspace/cedar/a.md": "a\n",
        # Of what both have changed the operator's version counts.
        "design/plan.md": "operator\n",
        "design/old.md": "old\n",
        "design/new.md": "new\n",
    }
    # Everything else is as the operator has it.
    assert git(shop.repo, "diff", "--name-only", "HEAD", start, "--", ".", ":!workspace", ":!design") == ""
    assert commons.begin(shop.context) == start


def test_what_either_side_has_deleted_stays_deleted_unless_the_operator_has_changed_it(shop):
    shop.commit(design__a_md="a\n", design__b_md="b\n", design__c_md="c\n")
    meta = meta_of(shop.context, start=commons.begin(shop.context))
    shop.cycle(meta, design__a_md=None, design__b_md=None, design__d_md="d\n")
    shop.commit(design__b_md="edited\n", design__c_md=None)
    commons.begin(shop.context)
    assert shop.files() == {"design/b.md": "edited\n", "design/d.md": "d\n"}


def test_a_file_of_the_operators_where_the_agents_have_a_folder_wins(shop):
    meta = meta_of(shop.context, start=commons.begin(shop.context))
    shop.cycle(meta, design__api__a_md="a\n", workspace__cedar__x_md="x\n")
    shop.commit(design__api="a file\n")
    commons.begin(shop.context)
    assert shop.files() == {"design/api": "a file\n", "workspace/cedar/x.md": "x\n"}


def test_another_branch_of_the_operators_is_followed_too(shop):
    meta = meta_of(shop.context, start=commons.begin(shop.context))
    shop.cycle(meta, workspace__cedar__a_md="a\n")
    shop.commit(on_main="1\n")
    commons.begin(shop.context)
    git(shop.repo, "switch", "-q", "--detach", "HEAD~1")
    shop.again()
    start = commons.begin(shop.context)
    assert "on_main" not in git(shop.repo, "ls-tree", "--name-only", start)
    assert shop.files() == {"workspace/cedar/a.md": "a\n"}


def test_a_branch_that_is_checked_out_is_left_alone_and_said(shop):
    commons.begin(shop.context)
    git(shop.repo, "switch", "-q", BRANCH)
    with pytest.raises(OperatorError, match="checked out") as refused:
        commons.begin(shop.context)
    assert "git switch" in refused.value.hint


@pytest.mark.parametrize(
    ("rule", "folder"), [("workspace/", "workspace"), ("/design", "design"), ("*.md", "workspace")]
)
def test_a_repository_that_hides_what_agents_write_is_refused(shop, rule, folder):
    (shop.repo / ".gitignore").write_text(f"{rule}\n")
    with pytest.raises(OperatorError, match=f"ignore {folder}/"):
        commons.begin(shop.context)


def test_a_commit_of_the_operators_on_the_branch_loses_nothing(shop):
    meta = meta_of(shop.context, start=commons.begin(shop.context))
    shop.cycle(meta, workspace__cedar__a_md="a\n")
    tip = git(shop.repo, "rev-parse", BRANCH).strip()
    mine = git(shop.repo, "commit-tree", f"{tip}^{{tree}}", "-p", tip, "-m", "by hand").strip()
    git(shop.repo, "update-ref", f"refs/heads/{BRANCH}", mine)
    shop.commit(more="1\n")
    commons.begin(shop.context)
    assert shop.files() == {"workspace/cedar/a.md": "a\n"}


# --- What is taken in -------------------------------------------------------------------------------------------------


def test_a_commit_says_whose_it_is_and_is_made_once(shop):
    meta = meta_of(shop.context, start=commons.begin(shop.context))
    made = shop.cycle(meta, design__a_md="a\n")
    room = CleanRoom(shop.context.layout.staging / "room-a1b2", shop.context.repo)
    again = commons.accept(shop.context, room, meta, shop.tree(room, meta.airlock_base, design__a_md="a\n"), "goal-1")
    assert again == made
    told = git(shop.repo, "log", "-1", "--format=%(trailers:only,unfold)", BRANCH).splitlines()
    head = git(shop.repo, "rev-parse", "HEAD").strip()
    assert told[:4] == [f"Agent-Run: {meta.run_name}", "Agent-Goal: goal-1", "Agent: cedar", f"Agent-Head: {head}"]
    assert git(shop.repo, "rev-list", "--count", f"HEAD..{BRANCH}").strip() == "1"


def test_a_cycle_that_changed_nothing_leaves_no_commit(shop):
    meta = meta_of(shop.context, start=commons.begin(shop.context))
    assert shop.cycle(meta) is None
    assert git(shop.repo, "rev-list", "--count", f"HEAD..{BRANCH}").strip() == "0"


def test_of_two_that_wrote_one_file_the_first_stays_and_the_second_lies_beside(shop):
    start = commons.begin(shop.context)
    shop.cycle(meta_of(shop.context, "vault", "aaaa", start), design__plan_md="vault\n", design__same_md="1\n")
    shop.cycle(
        meta_of(shop.context, "cedar", "bbbb", start),
        design__plan_md="cedar\n", design__same_md="1\n", workspace__cedar__x_md="x\n",
    )  # fmt: skip
    assert shop.files() == {
        "design/plan.md": "vault\n",
        "design/plan.cedar.md": "cedar\n",
        "design/same.md": "1\n",
        "workspace/cedar/x.md": "x\n",
    }


def test_a_folder_where_the_other_has_a_file_gets_another_name(shop):
    start = commons.begin(shop.context)
    shop.cycle(meta_of(shop.context, "vault", "aaaa", start), design__api="a file\n", design__ui__x_md="x\n")
    shop.cycle(meta_of(shop.context, "cedar", "bbbb", start), design__api__a_md="a\n", design__ui="a file\n")
    assert shop.files() == {
        "design/api": "a file\n",
        "design/api.cedar/a.md": "a\n",
        "design/ui.cedar": "a file\n",
        "design/ui/x.md": "x\n",
    }


def test_what_another_has_changed_is_not_deleted(shop):
    shop.commit(design__a_md="a\n")
    start = commons.begin(shop.context)
    shop.cycle(meta_of(shop.context, "vault", "aaaa", start), design__a_md="better\n")
    shop.cycle(meta_of(shop.context, "cedar", "bbbb", start), design__a_md=None)
    assert shop.files() == {"design/a.md": "better\n"}


def test_a_branch_that_was_deleted_meanwhile_comes_back(shop):
    meta = meta_of(shop.context, start=commons.begin(shop.context))
    git(shop.repo, "branch", "-q", "-D", BRANCH)
    shop.cycle(meta, design__a_md="a\n")
    assert shop.files() == {"design/a.md": "a\n"}


def test_cycles_that_end_at_one_moment_are_all_taken_in(shop):
    start = commons.begin(shop.context)
    metas = [
        meta_of(shop.context, agent, f"{n}{n}{n}{n}", start) for n, agent in enumerate(("cedar", "cipher", "vault"))
    ]
    together([
        lambda meta=meta: shop.cycle(meta, **{f"workspace__{meta.agent}__a_md": meta.agent, "design__b_md": meta.agent})
        for meta in metas
    ])  # fmt: skip
    found = shop.files()
    assert {path for path in found if path.startswith("workspace")} == {f"workspace/{m.agent}/a.md" for m in metas}
    assert sorted(text for path, text in found.items() if path.startswith("design")) == ["cedar", "cipher", "vault"]


@pytest.mark.slow
def test_a_kill_at_any_moment_loses_nothing_and_doubles_nothing(shop):
    start = commons.begin(shop.context)
    for number, _ in enumerate(every_step(lambda: _take_in(shop, start), stride=150)):
        assert number < 60
    _take_in(shop, start)
    assert git(shop.repo, "rev-list", "--count", f"HEAD..{BRANCH}").strip() == "1"
    assert shop.files() == {"design/a.md": "a\n"}
    assert git(shop.repo, "fsck", "--strict", "--no-dangling") == ""


def _take_in(shop: Shop, start: str) -> None:
    room = CleanRoom.make(shop.context.layout.staging / "room", shop.context.repo)
    tree = shop.tree(room, start, design__a_md="a\n")
    commons.accept(shop.context, room, meta_of(shop.context, start=start), tree, "goal-1")


# --- The patch of a whole goal ----------------------------------------------------------------------------------------


def carried(shop: Shop, meta: RunMeta, goal: str | None, write) -> commons.Carried:
    """What a cycle *meta* whose agent did *write* in its airlock carries out."""
    box = shop.context.store.box(meta.run_name)
    box.room.parent.mkdir(parents=True)
    opened = airlock.open_airlock(shop.context.repo, shop.context.layout, box, meta.airlock_base)
    write(opened.path)
    found = commons.carry(shop.context.repo, opened, meta, goal)
    room = CleanRoom.make(box.private / "look.git", shop.context.repo)
    assert room.apply(meta.repo_sha_start, found.export.patch) == found.export.tree
    return found


def write(**texts: str):
    """An agent that writes *texts*."""

    def act(tree: Path) -> None:
        for name, text in texts.items():
            path = tree / name.replace("__", "/").replace("_md", ".md")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return act


def names_in(patch: bytes) -> set[str]:
    return {line.split(b" b/")[1].decode() for line in patch.splitlines() if line.startswith(b"diff --git")}


def test_the_patch_holds_the_whole_goal_and_no_other_on_the_operators_own_commit(shop):
    start = commons.begin(shop.context)
    shop.cycle(
        meta_of(shop.context, "cedar", "aaaa", start), "goal-1", workspace__cedar__a_md="1\n", design__d_md="1\n"
    )
    shop.cycle(meta_of(shop.context, "cedar", "bbbb", commons.begin(shop.context)), "goal-0", design__other_md="0\n")
    head = shop.commit(shop__db_py="# new\n")
    meta = meta_of(shop.context, "cedar", "cccc", commons.begin(shop.context))
    found = carried(shop, meta, "goal-1", write(workspace__cedar__b_md="2\n", design__d_md="2\n"))
    assert meta.repo_sha_start == head != meta.start
    assert names_in(found.export.patch) == {"workspace/cedar/a.md", "workspace/cedar/b.md", "design/d.md"}
    assert (found.export.files, found.export.added, found.strays) == (3, 3, ())
    alone = carried(shop, records.replace(meta, run_name=meta.run_name + "0"), None, write(design__d_md="2\n"))
    assert names_in(alone.export.patch) == {"design/d.md"}


def test_a_cycle_that_only_read_has_the_patch_of_its_goal_so_far(shop):
    start = commons.begin(shop.context)
    shop.cycle(meta_of(shop.context, "cedar", "aaaa", start), "goal-1", design__d_md="1\n")
    meta = meta_of(shop.context, "cedar", "cccc", commons.begin(shop.context))
    assert names_in(carried(shop, meta, "goal-1", write()).export.patch) == {"design/d.md"}


def test_what_is_not_its_own_is_named(shop):
    meta = meta_of(shop.context, "cedar", "cccc", commons.begin(shop.context))
    made = write(README_md="mine\n", workspace__vault__a_md="hers\n", workspace__cedar__a_md="mine\n", designs="no\n")
    assert carried(shop, meta, None, made).strays == (b"README.md", b"designs", b"workspace/vault/a.md")


# --- What an agent says of its cycle ----------------------------------------------------------------------------------


def heard(*facts: tuple[str, dict]) -> Progress:
    return Progress(facts=tuple(Fact(kind, told) for kind, told in facts))


@pytest.mark.parametrize(
    ("facts", "goal", "completed"),
    [
        ((), None, False),
        ((("goal.created", {"goal_id": "goal-1"}),), "goal-1", False),
        ((("goal.completed", {"goal_id": "goal-1"}), ("cycle.ended", {"goal_id": "goal-1"})), "goal-1", True),
        ((("goal.completed", {"goal_id": "goal-0"}), ("cycle.ended", {"goal_id": "goal-1"})), "goal-1", False),
        ((("goal.completed", {}),), None, True),
        ((("goal.created", {"goal_id": "goal-1\nAgent-Run: x"}),), None, False),
        ((("goal.created", {"goal_id": ["goal-1"]}),), None, False),
        ((("goal.created", {"goal_id": "--output=x"}),), None, False),
    ],
)
def test_the_goal_of_a_cycle_is_read_with_suspicion(facts, goal, completed):
    seen = heard(*facts)
    assert (cycles.goal_of(seen), cycles.is_completed(seen)) == (goal, completed)


@pytest.mark.parametrize(
    ("path", "depth", "beside"),
    [
        (b"design/plan.md", -1, b"design/plan.cedar.md"),
        (b"design/a.tar.gz", -1, b"design/a.tar.cedar.gz"),
        (b"design/README", -1, b"design/README.cedar"),
        (b"design/.hidden", -1, b"design/.hidden.cedar"),
        (b"design/api/x.md", 1, b"design/api.cedar/x.md"),
    ],
)
def test_the_name_beside(path, depth, beside):
    assert cycles.aside(path, "cedar", depth) == beside
