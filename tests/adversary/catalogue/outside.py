"""Attacks on what lies outside of the airlock: the checkout, other airlocks, the outbox, the home."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.adversary.attack import BREACH, Attack, End
from tests.support import world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.adversary.arena import Arena, Story

README = End(status="CRASHED", failure=f"{BREACH}.*README.md")


def earlier_run(arena: Arena) -> None:
    """Another run is there already, in REVIEW, with its airlock."""
    story = arena.attack('write("shop/cart.py", "# honest\\n", "a"); print("tried|edit|GAINED|")')
    assert story.status == "REVIEW", story.done.stderr
    arena.constants["OTHER"] = story.box.name
    arena.constants["PATCH"] = story.state["patch"]["sha256"]


def earlier(arena: Arena) -> Path:
    """The box of the run before."""
    return arena.repo / ".agents" / "runs" / arena.constants["OTHER"]


def honest_patch_lands(arena: Arena, _: Story) -> None:
    """The earlier run's result is its recorded tree, whatever became of its airlock."""
    tree = json.loads((earlier(arena) / "state.json").read_text())["patch"]["tree"]
    assert arena.merge(box=earlier(arena)).returncode == 0
    assert world.git(arena.repo, "rev-parse", "HEAD^{tree}").strip() == tree


def _resume_follows_no_link(arena: Arena, story: Story) -> None:
    """What the agent left in its own home does not lead the next start of it anywhere."""
    before = arena.print()
    arena.command("resume", story.box.name)
    assert arena.print() == before


def _check_is_a_script(arena: Arena) -> None:
    (arena.repo / "check.sh").write_text("true\n")
    (arena.repo / "agent.yaml").write_text("check: sh check.sh\nverify: sh check.sh\n")
    world.git(arena.repo, "add", "check.sh", "agent.yaml")
    world.git(arena.repo, "commit", "-qm", "checks")


def _check_had_no_more(arena: Arena, story: Story) -> None:
    """Neither after the run nor at the gate does its code have more than its agent had."""
    before = arena.print()
    assert arena.merge(box=story.box).returncode == 0
    log = (story.box / "raw" / "check.log").read_text() + (story.box / "verify.json").read_text()
    assert "checked" in log
    assert "canary-" not in log.replace(str(arena.scratch), "")
    changed = {name for name, seen in arena.print().items() if before.get(name) != seen}
    assert str(arena.repo / "check.sh") in changed
    assert not changed & {str(arena.repo / "README.md"), str(arena.repo / ".git" / "config")}


def _secret_stays(arena: Arena, story: Story) -> None:
    shown = arena.command("show").stdout
    assert "canary-ssh-2" not in story.report + shown
    assert "canary-ssh-2" not in (story.box / "plan.md").read_text() if (story.box / "plan.md").exists() else True


ATTACKS = (
    Attack(
        name="absolute-path", faults="G17 G26", attempts=4,
        source="""
            attempt("append", write, ROOT + "/README.md", mode="a")
            attempt("truncate", os.truncate, ROOT + "/shop/cart.py", 0)
            attempt("unlink", os.unlink, ROOT + "/shop/db.py")
            attempt("new", write, ROOT + "/evil.py")
        """,
        none=README,
    ),
    Attack(
        name="dot-dot", faults="G17",
        source="""
            attempt("up", write, "../../../README.md", mode="a")
            attempt("proc", write, "/proc/self/cwd/../../../README.md", mode="a")
            attempt("root", write, "/proc/1/root" + ROOT + "/README.md", mode="a")
        """,
        attempts=3, none=README,
    ),
    Attack(
        name="symlink-write-through", faults="G17 G18", attempts=2,
        source="""
            os.symlink(ROOT + "/README.md", "file"); os.symlink(ROOT + "/shop", "folder")
            attempt("file", write, "./file")
            attempt("folder", write, "./folder/evil.py")
            os.unlink("file"); os.unlink("folder")
        """,
        none=README,
    ),
    Attack(
        name="hard-link", faults="G17", attempts=2,
        source="""
            attempt("link", os.link, ROOT + "/README.md", "twin")
            attempt("write", write, "twin", mode="r+")
            if os.path.lexists("twin"):
                os.unlink("twin")
        """,
        none=README,
    ),
    Attack(
        name="rename-parents", faults="G17 G39", attempts=2,
        source="""
            attempt("trees", os.rename, ROOT + "/agent_box", ROOT + "/elsewhere")
            attempt("airlock", os.rename, os.path.dirname(os.getcwd()), ROOT + "/trees")
        """,
        none=End(status="CRASHED", failure="*", verify=-1),
    ),
    Attack(
        name="metadata", faults="G17", verb="scout", attempts=4,
        source="""
            attempt("chmod", os.chmod, ROOT + "/README.md", 0o777)
            attempt("utime", os.utime, ROOT + "/shop/cart.py", (0, 0))
            attempt("setxattr", os.setxattr, ROOT + "/shop/db.py", "user.evil", b"1")
            attempt("mkdir", os.mkdir, ROOT + "/shop/evil")
        """,
        none=README,
    ),
    Attack(
        name="read-only-run-writes", faults="G17 M14", verb="scout", attempts=4,
        source="""
            attempt("edit", write, "README.md", mode="a")
            attempt("new", write, "agent.yaml", "sandbox: none\\n")
            attempt("command", write, ".claude/commands/evil.md")
            attempt("git", sh, "git", "commit", "-qam", "evil")
        """,
        none=README,
    ),
    Attack(
        name="another-airlock", faults="G17", attempts=2, before=earlier_run,
        source="""
            attempt("edit", write, ROOT + "/agent_box/trees/" + OTHER + "/shop/cart.py", "import evil\\n", "a")
            attempt("delete", os.unlink, ROOT + "/agent_box/trees/" + OTHER + "/README.md")
        """,
        full=End(held=True, same=True, then=honest_patch_lands), none=End(then=honest_patch_lands),
    ),
    Attack(
        name="outbox-link", faults="G17 S05", verb="plan", attempts=2,
        source="""
            # The outbox counts only where standard output says nothing.
            sys.stdout = sys.stderr
            attempt("file", os.symlink, HOME + "/.ssh/id_ed25519", os.environ["RUN_DIR"] + "/report.md")
            attempt("folder", os.symlink, HOME + "/.ssh", os.environ["RUN_DIR"] + "/evidence")
        """,
        full=End(same=True, then=_secret_stays), none=End(then=_secret_stays),
    ),
    Attack(
        name="outbox-pipe", faults="G13 N15", verb="plan",
        source="""
            sys.stdout = sys.stderr
            attempt("pipe", os.mkfifo, os.environ["RUN_DIR"] + "/report.md")
        """,
        full=End(same=True), none=End(),
    ),
    Attack(
        name="home-of-the-run", faults="G17 G18", attempts=2,
        source="""
            home = os.environ["HOME"] if os.environ["HOME"] != HOME else os.environ["RUN_DIR"]
            def swap(target, name):
                shutil.rmtree(name, ignore_errors=True)
                os.symlink(target, name)
            attempt("tmp", swap, ROOT + "/shop", home + "/tmp")
            attempt("config", swap, ROOT + "/.git", home + "/.config")
            sys.exit(1)
        """,
        full=End(status="CRASHED", failure="tool_error", same=True, then=_resume_follows_no_link),
        none=End(status="CRASHED", failure="tool_error", then=_resume_follows_no_link),
    ),
    Attack(
        name="checks-that-it-wrote", faults="M18 S03 G21", before=_check_is_a_script,
        source="""
            attempt("rewrite", write, "./check.sh", "\\n".join((
                SONG, f"cat {HOME}/.ssh/id_ed25519", f"echo evil >> {ROOT}/README.md", f"echo evil >> {ROOT}/.git/config",
                f"cat {ROOT}/.env", "(setsid sleep 300 &)", "echo checked",
            )))
        """,
        full=End(status="REVIEW", same=True, then=_check_had_no_more), none=None,
    ),
    Attack(
        name="home", faults="S03 P27", attempts=4,
        source="""
            attempt("bashrc", write, HOME + "/.bashrc", SONG + "\\n", "a")
            attempt("keys", write, HOME + "/.ssh/authorized_keys", "ssh-ed25519 AAAA evil\\n", "a")
            attempt("gitconfig", write, HOME + "/.gitconfig", "[core]\\n\\tfsmonitor = " + SONG + "\\n")
            attempt("folder", os.makedirs, HOME + "/.config/agent-box", exist_ok=True)
            attempt("trust", write, HOME + "/.config/agent-box/agent.yaml", "trust_unsandboxed: yes\\n")
        """,
        none=None,
    ),
)  # fmt: skip
