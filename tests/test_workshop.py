"""The airlock's part in a run: opened and furnished, found again or rebuilt, checked, and its work in the box."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from agents import workshop
from agents.errors import HostError
from essentials import records
from tests.support import boxes
from tests.support.world import git

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agents.context import Context
    from agents.plan import RunPlan

FACTS = {"sha256", "tree", "base", "files", "added", "removed", "binary", "findings"}


class Shop:
    """A claimed fix in a real repository, without a sandbox."""

    def __init__(self, tmp_path: Path, **settings: Any) -> None:
        self.context, self.said = boxes.make_context(tmp_path)
        self.set(**settings)
        self.made, self.owner = boxes.claimed(self.context, run_type="fix")
        self.box = self.context.store.box(self.made.meta.run_name)
        self.root = self.context.layout.root

    def set(self, **settings: Any) -> None:
        """Have *settings* from now on."""
        config = records.replace(self.context.config, **settings)
        self.context: Context = records.replace(self.context, config=config)

    @property
    def tree(self) -> Path:
        return self.made.root

    def ready(self, attempt: int = 1, stop: Callable[[], bool] = lambda: False) -> workshop.Bench:
        """The airlock for the start number *attempt*."""
        return workshop.ready(self.context, self.at(attempt), stop)

    def at(self, attempt: int) -> RunPlan:
        """The plan of the start number *attempt*."""
        return records.replace(self.made, state=records.replace(self.made.state, attempt=attempt))

    def export(self, bench: workshop.Bench | None = None) -> dict[str, Any]:
        """What is carried into the box."""
        found = workshop.export(self.context, self.made.meta, bench)
        assert found is not None
        return found

    def lose_tree(self) -> None:
        """The airlock vanishes, as when the operator removes it by hand."""
        shutil.rmtree(self.tree)
        git(self.root, "worktree", "prune")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


# --- Made ready -------------------------------------------------------------------------------------------------------


def test_the_first_start_opens_the_airlock_at_the_commit_of_the_start(shop: Shop) -> None:
    """T125: what the operator has changed since is not in it."""
    base = shop.made.meta.repo_sha_start
    (shop.root / "src/app.py").write_text("print('changed')\n")
    git(shop.root, "commit", "-qam", "second")
    bench = shop.ready()
    assert (bench.airlock.path, bench.airlock.base) == (shop.tree, base)
    assert (shop.tree / "src/app.py").read_text() == "print('hello')\n"
    assert bench.furnished is not None
    assert (bench.furnished.paths, bench.furnished.tree, bench.linked, bench.notes) == ((), None, (), ())


def test_an_airlock_is_furnished_and_none_of_it_is_the_agents_work(tmp_path: Path) -> None:
    """T127: copies, links and what setup made are in no patch."""
    shop = Shop(tmp_path, copy=("local.cfg",), link=("node_modules",), setup=("echo built > built.txt",))
    (shop.root / "local.cfg").write_text("a = 1\n")
    (shop.root / "listed.txt").write_text("x\n")
    (shop.root / ".worktreeinclude").write_text("listed.txt\n")
    (shop.root / "node_modules").mkdir()
    bench = shop.ready()
    assert (shop.tree / "local.cfg").read_text() == "a = 1\n"
    assert (shop.tree / "listed.txt").read_text() == "x\n"
    assert (shop.tree / "node_modules").resolve() == shop.root / "node_modules"
    assert (shop.tree / "built.txt").read_text() == "built\n"
    assert bench.linked == (shop.root / "node_modules",)
    assert any("node_modules" in note for note in bench.notes)
    assert shop.export(bench)["files"] == 0
    (shop.tree / "built.txt").write_text("changed\n")
    (shop.tree / "new.txt").write_text("new\n")
    # What the agent makes of it is its work.
    assert shop.export(bench)["files"] == 2


def test_what_is_missing_is_a_note(tmp_path: Path) -> None:
    bench = Shop(tmp_path, copy=("absent.cfg",), link=("absent",)).ready()
    assert len(bench.notes) == 2
    assert all("absent" in note for note in bench.notes)


def test_setup_runs_in_order_in_the_airlock_with_a_log(tmp_path: Path) -> None:
    shop = Shop(tmp_path, setup=("pwd; echo one > order", "cat order; echo two >> order"))
    shop.ready()
    assert (shop.tree / "order").read_text() == "one\ntwo\n"
    log = (shop.box.path / "raw" / "setup.log").read_text().splitlines()
    assert log == ["$ pwd; echo one > order", str(shop.tree), "$ cat order; echo two >> order", "one"]
    assert git(shop.root, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("command", "timeout", "words"),
    [("echo no; exit 3", 60.0, "failed (exit code 3)"), ("kill -9 $$", 60.0, "failed (exit code"), ("sleep 300", 0.3, "took too long")],
)  # fmt: skip
def test_a_setup_that_fails_is_the_hosts_failure_and_the_next_is_not_run(
    tmp_path: Path, command: str, timeout: float, words: str
) -> None:
    shop = Shop(tmp_path, setup=(command, "touch never"), setup_timeout=timeout)
    with pytest.raises(HostError) as caught:
        shop.ready()
    assert words in caught.value.message
    assert command in caught.value.message
    assert "raw/setup.log" in caught.value.hint
    assert not (shop.tree / "never").exists()
    assert (shop.box.path / "raw" / "setup.log").read_text().startswith(f"$ {command}\n")


def test_who_asks_to_stop_during_setup_is_heard_and_it_is_no_failure(tmp_path: Path) -> None:
    shop = Shop(tmp_path, setup=("touch begun; sleep 300",))
    begun = time.monotonic()
    shop.ready(stop=(shop.tree / "begun").exists)
    assert time.monotonic() - begun < 100


# --- Again ------------------------------------------------------------------------------------------------------------


def test_a_resumed_run_finds_its_airlock_as_it_was(tmp_path: Path) -> None:
    """T143: with the half of the work that is done, and what was furnished is still not the agent's."""
    shop = Shop(tmp_path, setup=("date +%N >> times",), copy=("local.cfg",))
    (shop.root / "local.cfg").write_text("a = 1\n")
    shop.ready()
    before = (shop.tree / "times").read_text()
    (shop.tree / "half.txt").write_text("half\n")
    bench = shop.ready(attempt=2)
    assert (shop.tree / "half.txt").read_text() == "half\n"
    assert (shop.tree / "times").read_text() == before
    assert bench.furnished is not None
    assert bench.furnished.paths == (b"local.cfg",)
    assert shop.export(bench)["files"] == 1


CHANGES = """
import os, shutil
shutil.rmtree("src"); open("src", "w").write("a file where a folder was\\n")
os.remove("README.md"); os.makedirs("README.md/deep"); open("README.md/deep/file", "wb").write(bytes(range(256)))
os.symlink("src", "link"); open("run", "w").write("#!/bin/sh\\n"); os.chmod("run", 0o755)
"""


def listing(tree: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of *tree* with its kind and content."""
    found = {}
    for path in sorted(tree.rglob("*")):
        if path.is_symlink() or path.is_file():
            content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(tree))] = (path.lstat().st_mode, content)
    return {name: entry for name, entry in found.items() if name != ".git"}


def test_an_airlock_that_has_gone_begins_where_its_patch_left_off(shop: Shop) -> None:
    """T143, T127: the very tree, whatever has changed place with what."""
    bench = shop.ready()
    subprocess.run([sys.executable, "-IS", "-c", CHANGES], cwd=shop.tree, check=True)
    carried, were = shop.export(bench), listing(shop.tree)
    shop.lose_tree()
    again = shop.ready(attempt=2)
    assert listing(shop.tree) == were
    assert again.airlock.base == shop.made.meta.repo_sha_start
    assert shop.export(again) == carried


def test_an_airlock_that_has_gone_without_a_patch_begins_anew(shop: Shop) -> None:
    shop.ready()
    (shop.tree / "lost.txt").write_text("lost\n")
    shop.lose_tree()
    shop.ready(attempt=2)
    assert sorted(path.name for path in shop.tree.iterdir()) == [".git", "README.md", "src"]
    assert shop.export()["files"] == 0


# --- Carried into the box ---------------------------------------------------------------------------------------------


def test_what_the_state_says_of_a_patch_is_true(shop: Shop) -> None:
    """T127: its seal, its base, and the numbers that git counts."""
    bench = shop.ready()
    (shop.tree / "src/app.py").write_text("print('hello')\nprint('again')\n")
    (shop.tree / "README.md").unlink()
    (shop.tree / "blob").write_bytes(bytes(range(256)))
    found = shop.export(bench)
    patch = (shop.box.path / "changes.patch").read_bytes()
    assert set(found) == FACTS
    assert found["sha256"] == hashlib.sha256(patch).hexdigest()
    assert (found["base"], found["files"], found["added"], found["removed"], found["binary"]) == (
        shop.made.meta.repo_sha_start,
        3,
        1,
        1,
        1,
    )
    assert json.loads(json.dumps(found)) == found
    git(shop.root, "apply", "--index", str(shop.box.path / "changes.patch"))
    assert git(shop.root, "write-tree").strip() == found["tree"]


@pytest.mark.parametrize("with_bench", [True, False])
def test_to_carry_it_again_gives_the_same(shop: Shop, with_bench: bool) -> None:
    """As the sweep does after a supervisor that died on the way."""
    bench = shop.ready()
    (shop.tree / "new.txt").write_text("new\n")
    first, patch = shop.export(bench), (shop.box.path / "changes.patch").read_bytes()
    assert shop.export(bench if with_bench else None) == first
    assert (shop.box.path / "changes.patch").read_bytes() == patch


def test_an_empty_patch_is_one_that_changes_nothing(shop: Shop) -> None:
    found = shop.export(shop.ready())
    assert (found["files"], found["added"], found["removed"], found["findings"]) == (0, 0, 0, [])
    assert found["tree"] == git(shop.root, "rev-parse", "HEAD^{tree}").strip()
    assert (shop.box.path / "changes.patch").read_bytes() == b""


def test_without_an_airlock_there_is_nothing_to_carry(shop: Shop) -> None:
    assert workshop.export(shop.context, shop.made.meta) is None
    assert workshop.salvage(shop.context, shop.made.meta) == (None, "")
    assert not (shop.box.path / "changes.patch").exists()


def test_what_a_dead_supervisor_has_left_is_salvaged(shop: Shop) -> None:
    shop.ready()
    (shop.tree / "new.txt").write_text("new\n")
    found, trouble = workshop.salvage(shop.context, shop.made.meta)
    assert found is not None
    assert (found["files"], trouble) == (1, "")


NOTES = [
    "",
    "{",
    "[]",
    "null",
    "{}",
    '{"base": 3}',
    '{"base": "x", "files": 1, "submodules": [], "tracked_private": 5, "notes": []}',
    "\0",
]


@pytest.mark.parametrize("text", NOTES, ids=range(len(NOTES)))
@pytest.mark.parametrize("name", ["airlock.json", "furnished.json"])
def test_damaged_notes_cost_the_patch_and_not_the_sweep(shop: Shop, name: str, text: str) -> None:
    """C29: an agent without a wall could have written them, and every later command would end in a traceback."""
    shop.ready()
    (shop.tree / "new.txt").write_text("new\n")
    (shop.box.room / name).write_text(text)
    found, trouble = workshop.salvage(shop.context, shop.made.meta)
    assert (found is None) == bool(trouble), (found, trouble)
    assert trouble.isprintable()
    if name == "airlock.json":
        with pytest.raises(HostError):
            workshop.close(shop.context, shop.made.meta.run_name, None)
    assert (shop.tree / "new.txt").exists()


def test_a_room_that_is_no_repository_any_more_is_a_sentence(shop: Shop) -> None:
    shop.ready()
    (shop.tree / "new.txt").write_text("new\n")
    shutil.rmtree(shop.box.room / "objects")
    found, trouble = workshop.salvage(shop.context, shop.made.meta)
    assert found is None
    assert trouble


# --- Checked ----------------------------------------------------------------------------------------------------------


def test_checks_that_pass_are_said_and_leave_a_log(tmp_path: Path) -> None:
    shop = Shop(tmp_path, check=("test -f new.txt", "echo fine"))
    bench = shop.ready()
    (shop.tree / "new.txt").write_text("new\n")
    assert workshop.checked(shop.context, shop.made, bench, lambda: False) is None
    assert shop.said[-2:] == ["check: test -f new.txt", "check: echo fine"]
    assert (shop.box.path / "raw" / "check.log").read_text() == "$ test -f new.txt\n$ echo fine\nfine\n"


@pytest.mark.parametrize(
    ("command", "timeout", "words"),
    [("echo no; exit 3", 60.0, "failed with exit code 3"), ("kill -9 $$", 60.0, "failed with exit code"), ("sleep 300", 0.3, "took too long")],
)  # fmt: skip
def test_the_first_check_that_fails_is_named_and_the_next_is_not_run(
    tmp_path: Path, command: str, timeout: float, words: str
) -> None:
    """T137: tests_failed says which, and where to look."""
    shop = Shop(tmp_path, check=("true", command, "touch never"), verify_timeout=timeout)
    said = workshop.checked(shop.context, shop.made, shop.ready(), lambda: False)
    assert said is not None
    assert all(part in said for part in (command, words, "raw/check.log"))
    assert not (shop.tree / "never").exists()


def test_a_check_that_is_stopped_has_not_failed(tmp_path: Path) -> None:
    shop = Shop(tmp_path, check=("touch begun; sleep 300", "touch never"))
    bench = shop.ready()
    assert workshop.checked(shop.context, shop.made, bench, (shop.tree / "begun").exists) is None
    assert not (shop.tree / "never").exists()


def test_the_commands_get_an_environment_of_their_own(tmp_path: Path) -> None:
    """T151: what any program needs and .env.test; nothing of the operator's, and a home that is not theirs."""
    shop = Shop(tmp_path, check=("env | sort",))
    (shop.root / ".env.test").write_text("DATABASE_URL=sqlite://\nHOME=/evil\nLD_PRELOAD=/evil.so\n")
    given = {"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": "/home/ada", "AWS_SECRET": "s3cret", "TMPDIR": "/operators"}
    shop.context = records.replace(shop.context, environ=given)
    assert workshop.checked(shop.context, shop.made, shop.ready(), lambda: False) is None
    lines = (shop.box.path / "raw" / "check.log").read_text().splitlines()[1:]
    seen = dict(line.split("=", 1) for line in lines)
    home = str(shop.box.private / "command-home")
    wanted = {
        "PATH": os.defpath, "LANG": "C.UTF-8", "HOME": home, "CI": "true", "DATABASE_URL": "sqlite://",
        "GIT_CONFIG_NOSYSTEM": "1",
    }  # fmt: skip
    assert {name: seen.get(name) for name in wanted} == wanted
    # The shell adds two of its own, and the guard its mark.
    assert {name for name in seen if not name.startswith("AGENT_BOX_")} - {"PWD", "OLDPWD", "SHLVL", "_"} == set(wanted)


# --- Closed -----------------------------------------------------------------------------------------------------------


def test_an_airlock_whose_work_is_in_the_patch_can_go(shop: Shop) -> None:
    """G39: it goes with its registration, and once is enough."""
    bench = shop.ready()
    (shop.tree / "new.txt").write_text("new\n")
    found = shop.export(bench)
    for _ in range(2):
        workshop.close(shop.context, shop.made.meta.run_name, found["tree"])
        assert not shop.tree.exists()
    assert git(shop.root, "worktree", "list").count("\n") == 1


@pytest.mark.parametrize("exported", [False, True])
def test_one_with_work_that_is_in_no_patch_stays_unless_it_is_forced(shop: Shop, exported: bool) -> None:
    bench = shop.ready()
    (shop.tree / "new.txt").write_text("new\n")
    tree = shop.export(bench)["tree"] if exported else None
    (shop.tree / "later.txt").write_text("later\n")
    with pytest.raises(HostError, match="in no patch"):
        workshop.close(shop.context, shop.made.meta.run_name, tree)
    assert (shop.tree / "later.txt").exists()
    workshop.close(shop.context, shop.made.meta.run_name, tree, force=True)
    assert not shop.tree.exists()


def test_one_that_never_was_can_be_closed(shop: Shop) -> None:
    workshop.close(shop.context, shop.made.meta.run_name, None)
    assert not shop.tree.exists()
