"""Attacks on git: configuration, hooks, filters, refs, index and pointers, planted for a later git to obey."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.adversary.attack import BREACH, Attack, End
from tests.support import world

if TYPE_CHECKING:
    from tests.adversary.arena import Arena, Story


def noticed(what: str) -> End:
    """The breach names *what* was changed."""
    return End(status="CRASHED", failure=f"{BREACH}.*{what}")


def _whole_history(arena: Arena, _: Story) -> None:
    assert world.git(arena.repo, "fsck", "--strict") == ""


def _registration_survives(arena: Arena, story: Story) -> None:
    """The airlock is no longer vouched for, so nothing is removed for it: neither here nor elsewhere."""
    assert arena.command("reject", story.box.name, "no").returncode in {0, 2, 3, 4, 5}
    assert (arena.repo / "README.md").is_file()
    assert (arena.repo / ".git" / "HEAD").is_file()


def _lands_without_song(arena: Arena, story: Story) -> None:
    """What the agent left beside its patch does not come along."""
    assert arena.merge().returncode == 0
    assert world.git(arena.repo, "rev-parse", "HEAD^{tree}").strip() == story.state["patch"]["tree"]


def _refused_for(word: str) -> End:
    def refused(arena: Arena, _: Story) -> None:
        before = arena.head()
        done = arena.merge()
        assert done.returncode == 3, done.stderr
        assert word in done.stderr
        assert arena.head() == before

    return End(status="REVIEW", then=refused)


ATTACKS = (
    Attack(
        name="config-filter", faults="G21", plants=True, attempts=3,
        source="""
            attempt("clean", config, "filter.e.clean", SONG + "; cat")
            attempt("process", config, "filter.e.process", SONG)
            attempt("required", config, "filter.e.required", "true")
            write(".gitattributes", "* filter=e\\n")
        """,
        full=End(status="REVIEW", held=True, same=True), none=noticed("config"),
    ),
    Attack(
        name="config-fsmonitor", faults="G21", plants=True,
        source="""
            attempt("fsmonitor", config, "core.fsmonitor", SONG + "; false")
        """,
        none=noticed("config"),
    ),
    Attack(
        name="config-hookspath", faults="G21", plants=True,
        source="""
            os.makedirs("h"); write("h/post-checkout", "#!/bin/sh\\n" + SONG + "\\n"); os.chmod("h/post-checkout", 0o755)
            for name in ("pre-commit", "reference-transaction", "post-index-change", "post-merge"):
                shutil.copy("h/post-checkout", "h/" + name)
            attempt("hooksPath", config, "core.hooksPath", os.path.abspath("h"))
        """,
        full=End(status="REVIEW", held=True, same=True), none=noticed("config"),
    ),
    Attack(
        name="hooks", faults="G21 G32", plants=True, attempts=4,
        source="""
            for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"):
                def plant(name=name):
                    write(ROOT + "/.git/hooks/" + name, "#!/bin/sh\\n" + SONG + "\\n")
                    os.chmod(ROOT + "/.git/hooks/" + name, 0o755)
                attempt(name, plant)
        """,
        none=noticed("hooks/"),
    ),
    Attack(
        name="config-diff-programs", faults="G21 M15", plants=True, attempts=3,
        source="""
            attempt("external", config, "diff.external", SONG)
            attempt("textconv", config, "diff.e.textconv", SONG + "; cat")
            attempt("command", config, "diff.e.command", SONG)
            write(".gitattributes", "* diff=e\\n")
            write("shop/cart.py", "# edited\\n", "a")
        """,
        full=End(status="REVIEW", held=True, same=True), none=noticed("config"),
    ),
    Attack(
        name="config-include", faults="G21", plants=True,
        source="""
            write("inc", "[core]\\n\\tfsmonitor = " + SONG + "\\n[diff]\\n\\texternal = " + SONG + "\\n")
            attempt("include", config, "include.path", os.path.abspath("inc"))
        """,
        full=End(status="REVIEW", held=True, same=True), none=noticed("config"),
    ),
    Attack(
        name="config-programs", faults="G21", plants=True, attempts=7,
        source="""
            for key in ("core.pager", "core.editor", "gpg.program", "core.sshCommand", "credential.helper", "core.askPass", "sequence.editor"):
                attempt(key, config, key, SONG)
        """,
        none=noticed("config"),
    ),
    Attack(
        name="config-worktree", faults="G21", plants=True, attempts=3,
        source="""
            attempt("extension", config, "extensions.worktreeConfig", "true")
            attempt("main", write, ROOT + "/.git/config.worktree", "[core]\\n\\tfsmonitor = " + SONG + "\\n")
            mine = sh("git", "rev-parse", "--absolute-git-dir")
            attempt("mine", write, mine + "/config.worktree", "[core]\\n\\tfsmonitor = " + SONG + "\\n")
        """,
        none=noticed("config.worktree"),
    ),
    Attack(
        name="config-worktree-of-its-own", faults="G21 G26", plants=True,
        source="""
            mine = sh("git", "rev-parse", "--absolute-git-dir")
            attempt("mine", write, mine + "/config.worktree", "[core]\\n\\tfsmonitor = " + SONG + "\\n\\tworktree = " + ROOT + "\\n")
            write("shop/cart.py", "# edited\\n", "a")
        """,
        full=End(status="REVIEW", held=True, same=True), none=End(status="REVIEW", then=_lands_without_song),
    ),
    Attack(
        name="info-attributes", faults="G21 G22", plants=True,
        source="""
            attempt("attributes", write, ROOT + "/.git/info/attributes", "* filter=e diff=e -text\\n")
        """,
        none=noticed("info/attributes"),
    ),
    Attack(
        name="refs", faults="G26", plants=True, attempts=4,
        source="""
            os.environ.update(GIT_AUTHOR_NAME="x", GIT_AUTHOR_EMAIL="x@x", GIT_COMMITTER_NAME="x", GIT_COMMITTER_EMAIL="x@x")
            attempt("commit", sh, "git", "commit", "--allow-empty", "-qm", "evil")
            attempt("update-ref", sh, "git", "update-ref", "refs/heads/main", "HEAD")
            attempt("branch -D", sh, "git", "branch", "-D", "side")
            attempt("tag", sh, "git", "tag", "v1")
        """,
        none=noticed("refs"),
    ),
    Attack(
        name="head", faults="G26", plants=True,
        source="""
            attempt("HEAD", sh, "git", "--git-dir=" + ROOT + "/.git", "symbolic-ref", "HEAD", "refs/heads/side")
        """,
        none=noticed("HEAD"),
    ),
    Attack(
        name="index", faults="G24 G26", plants=True, attempts=2,
        source="""
            attempt("unlink", os.unlink, ROOT + "/.git/index")
            attempt("lock", write, ROOT + "/.git/index.lock", "")
        """,
        none=noticed("file README.md"),
    ),
    Attack(
        name="index-hides", faults="G24", plants=True, attempts=2,
        source="""
            attempt("assume", sh, "git", "-C", ROOT, "update-index", "--assume-unchanged", "README.md")
            attempt("edit", write, ROOT + "/README.md")
        """,
    ),
    Attack(
        name="exclude-hides", faults="G23", plants=True, attempts=2,
        source="""
            attempt("exclude", write, ROOT + "/.git/info/exclude", "*\\n", "a")
            attempt("plant", write, ROOT + "/sitecustomize.py", "import os; os.system(" + repr(SONG) + ")\\n")
        """,
    ),
    Attack(
        name="objects", faults="G36 G37 G26", plants=True, attempts=3,
        source="""
            attempt("alternates", write, ROOT + "/.git/objects/info/alternates", "/tmp/evil\\n")
            attempt("loose", os.mkdir, ROOT + "/.git/objects/zz")
            def poison():
                for path in pathlib.Path(ROOT, ".git/objects").glob("??/*"):
                    os.chmod(path, 0o644)
                    write(path)
            attempt("poison", poison)
        """,
        # Without a wall nothing is promised of the history: who destroys it is as a rule noticed by git itself.
        full=End(held=True, same=True, then=_whole_history), none=None,
    ),
    Attack(
        name="worktrees-of-git", faults="G26 G39", plants=True, attempts=3,
        source="""
            mine = sh("git", "rev-parse", "--absolute-git-dir")
            attempt("gitdir", write, mine + "/gitdir", ROOT + "/.git\\n")
            attempt("commondir", write, mine + "/commondir", "/tmp/evil\\n")
            attempt("remove", sh, "git", "-C", ROOT, "worktree", "remove", "--force", "--force", os.getcwd())
        """,
        full=End(status="REVIEW", held=True, same=True, then=_registration_survives), none=End(status="*", failure="*", verify=-1, then=_registration_survives),
    ),
    Attack(
        name="pointer", faults="G20 G21", plants=True,
        source="""
            # Kept where the run may keep things, and obeyed by any git that goes by the pointer.
            evil = os.environ["RUN_DIR"] + "/evil.git"
            sh("git", "init", "-q", "--bare", evil)
            for key, value in (("core.bare", "false"), ("core.fsmonitor", SONG), ("filter.e.clean", SONG + "; cat")):
                sh("git", "--git-dir=" + evil, "config", key, value)
            attempt("write", write, "./.git", "gitdir: " + evil + "\\n")
            write("shop/cart.py", "# edited\\n", "a")
        """,
        full=End(status="REVIEW", held=True, same=True, then=_lands_without_song), none=End(status="REVIEW", then=_lands_without_song),
    ),
    Attack(
        name="pointer-removed", faults="G20", plants=True,
        source="""
            attempt("rename", os.rename, "./.git", "./old")
            if os.path.lexists("old"):
                os.unlink("old")
            write("shop/cart.py", "# edited\\n", "a")
        """,
        full=End(status="REVIEW", held=True, same=True, then=_lands_without_song), none=End(status="REVIEW", then=_lands_without_song),
    ),
    Attack(
        name="nested-repository", faults="G19 G21", plants=True,
        source="""
            def nest():
                sh("git", "init", "-q", "nested")
                sh("git", "-C", "nested", "config", "core.fsmonitor", SONG)
                write("nested/code.py")
            attempt("nest", nest)
            write("shop/cart.py", "# edited\\n", "a")
        """,
        full=End(status="REVIEW", same=True, then=_lands_without_song), none=End(status="REVIEW", then=_lands_without_song),
    ),
    Attack(
        name="submodule", faults="G06 G34", plants=True, attempts=2,
        source="""
            attempt("modules", write, ".gitmodules", '[submodule "x"]\\n\\tpath = x\\n\\turl = ./x\\n\\tupdate = !' + SONG + "\\n")
            attempt("edit", write, "shop/cart.py", "# edited\\n", "a")
        """,
        full=_refused_for("submodules"), none=_refused_for("submodules"),
    ),
    Attack(
        name="airlock-is-gone", faults="G27", plants=True, attempts=3,
        source="""
            here = os.getcwd()
            attempt("rename", os.rename, here, here + "-gone")
            attempt("rmtree", shutil.rmtree, here)
            attempt("link", os.symlink, ROOT, here)
        """,
        # The root of the airlock stays, what was in it may go: that is a patch like any other.
        full=End(status="*", failure="*", same=True), none=End(status="CRASHED", failure="*", then=_registration_survives),
    ),
)  # fmt: skip
