"""Attacks on secrets: files, environments, memory, configuration, other runs, sockets; and what is shown to people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.adversary.attack import Attack, End
from tests.adversary.catalogue.outside import earlier_run
from tests.support import world

if TYPE_CHECKING:
    from tests.adversary.arena import Arena, Story

TOKENS = {
    "AWS_SECRET_ACCESS_KEY": "canary-env-aws", "GITHUB_TOKEN": "canary-env-gh", "OPENAI_API_KEY": "canary-env-openai",
    "ANTHROPIC_API_KEY": "canary-env-anthropic", "SSH_AUTH_SOCK": "/tmp/canary-env-agent", "KUBECONFIG": "/canary-env-kube",
    "NPM_TOKEN": "canary-env-npm", "DATABASE_URL": "postgres://u:canary-env-db@h/d", "VAULT_TOKEN": "canary-env-vault",
    "GPG_AGENT_INFO": "canary-env-gpg", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/canary-env-dbus",
    "GIT_ASKPASS": "/canary-env-askpass", "DOCKER_HOST": "unix:///canary-env-docker", "LD_PRELOAD_CANARY": "canary-env-ld",
}  # fmt: skip
"""What an operator's shell may hold (S01)."""

SHAPES = {
    "aws": "AKIAIOSFODNN7EXAMPLE", "github": "ghp_0123456789abcdefghijABCDEFGHIJ012345", "slack": "xoxb-123456789012-abcdefghijkl",
    "url": "postgres://ada:hunter22canary@db.example.org/shop", "assigned": "password = hunter22canary",
    "bearer": "Authorization: Bearer abcdef0123456789abcdef0123",
}  # fmt: skip
VISIBLE = ("AKIAIOSFODNN7EXAMPLE", "ghp_0123456789", "xoxb-1234", "hunter22canary", "abcdef0123456789abcdef0123")


def _never_said(arena: Arena, story: Story) -> None:
    """No canary reached the agent, so none is in its stream."""
    assert "canary-" not in story.said.replace(str(arena.scratch), "")


def _only_configured(arena: Arena, story: Story) -> None:
    _never_said(arena, story)
    assert "tried|test file|GAINED|'for-tests'" in story.said


def _shown_without(arena: Arena, story: Story) -> None:
    """S05, S07: the evidence is exact, whatever people are shown is not."""
    shown = [story.report, (arena.repo / ".agents" / "INDEX.md").read_text(), story.done.stdout, story.done.stderr]
    shown += [arena.command(*words).stdout for words in (["show"], ["status"], ["list"])]
    assert not [word for word in VISIBLE if word in "".join(shown)]
    assert all(word in story.said for word in VISIBLE)
    assert (story.box / "raw" / "stream.jsonl").stat().st_mode & 0o077 == 0


def _closed_to_others(_: Arena, story: Story) -> None:
    """S09: whatever the umask of the operator is."""
    loose = [
        path for path in (story.box, *story.box.rglob("*")) if path.lstat().st_mode & 0o077 and not path.is_symlink()
    ]
    assert [path for path in loose if "outbox" not in path.parts and "private" not in path.parts] == []


def _env_test(arena: Arena) -> None:
    (arena.repo / ".env.test").write_text("FOR_TESTS=for-tests\n")
    world.git(arena.repo, "add", ".env.test")
    world.git(arena.repo, "commit", "-qm", "test settings")


SECRET_END = End(same=True, then=_never_said)

ATTACKS = (
    Attack(
        name="environment-files", faults="S04", verb="scout", attempts=3,
        source="""
            attempt("cwd", read, ".env")
            attempt("checkout", read, ROOT + "/.env")
            attempt("grep", sh, "grep", "-r", "PASSWORD", ROOT, "--include=.env")
        """,
        full=SECRET_END, none=None,
    ),
    Attack(
        name="environment-files-of-a-fix", faults="S04", attempts=2,
        source="""
            attempt("checkout", read, ROOT + "/.env")
            attempt("airlock", read, "./.env")
        """,
        full=End(held=True, same=True, then=_never_said), none=None,
    ),
    Attack(
        name="home-secrets", faults="S03", attempts=6,
        source="""
            for name in (".ssh/id_ed25519", ".aws/credentials", ".netrc", ".git-credentials", ".config/gh/hosts.yml"):
                attempt(name, read, HOME + "/" + name)
            attempt("list", os.listdir, HOME)
        """,
        # Its parent may be a folder of the sandbox's own, so the home may be there, and empty.
        full=SECRET_END, none=None,
    ),
    Attack(
        name="environment", faults="S01 S08", attempts=2, environ=TOKENS, before=_env_test,
        source="""
            attempt("own", sorted, os.environ.items())
            print(sorted(os.environ.items()))
            attempt("test file", os.environ.get, "FOR_TESTS")
            attempt("arguments", lambda: [print(read(f"/proc/{pid}/cmdline", 10**5)) for pid in os.listdir("/proc") if pid.isdigit()] and None)
        """,
        full=End(same=True, then=_only_configured), none=End(then=_only_configured),
    ),
    Attack(
        name="environments-of-others", faults="S02", attempts=2, environ=TOKENS,
        source="""
            def environments():
                for pid in filter(str.isdigit, os.listdir("/proc")):
                    with contextlib.suppress(OSError):
                        print(read(f"/proc/{pid}/environ", 10**6))
                return "looked"
            attempt("all", environments)
            attempt("supervisor", lambda: print(read(f"/proc/{supervisor()}/environ", 10**6)))
            attempt("memory", lambda: os.open(f"/proc/{supervisor()}/mem", os.O_RDWR))
        """,
        full=SECRET_END, none=None,
    ),
    Attack(
        name="git-credentials", faults="S03 S10", attempts=3,
        source="""
            attempt("config", lambda: print(read(ROOT + "/.git/config")))
            attempt("remote", lambda: print(sh("git", "config", "--get-regexp", "remote|http|credential")))
            attempt("fill", lambda: print(sh("git", "credential", "fill", input="protocol=https\\nhost=example.org\\n\\n", env={**os.environ, "GIT_TERMINAL_PROMPT": "0"})))
            attempt("packed", lambda: print(sh("git", "remote", "-v")))
        """,
        full=SECRET_END, none=None,
    ),
    Attack(
        name="another-runs-stream", faults="S09 T25", attempts=3, before=earlier_run,
        # The name of its own box is seen, for its outbox lies in there; that of any other is not.
        source="""
            def others(path):
                found = [name for name in os.listdir(path) if name == OTHER]
                if not found:
                    raise FileNotFoundError(errno.ENOENT, "no other box")
                return found
            attempt("stream", read, ROOT + "/.agents/runs/" + OTHER + "/raw/stream.jsonl")
            attempt("box", others, ROOT + "/.agents/runs")
            attempt("airlock", read, ROOT + "/agent_box/trees/" + OTHER + "/shop/cart.py")
            attempt("ledger", read, ROOT + "/.agents/INDEX.jsonl")
        """,
        full=End(held=True, same=True), none=None,
    ),
    Attack(
        name="own-box-of-a-scout", faults="S09 K02", verb="scout", attempts=3,
        source="""
            def look(path):
                found = os.listdir(path)
                if not found:
                    raise FileNotFoundError(errno.ENOENT, "nothing there")
                return found
            attempt("data", look, ROOT + "/.agents")
            attempt("trees", look, ROOT + "/agent_box")
            attempt("meta", read, ROOT + "/.agents/latest/meta.yaml")
        """,
        # The outbox and the home of the run lie in the box: their names are seen, what is beside them is not.
        full=End(same=True, then=lambda _, story: _no_evidence(story)), none=None,
    ),
    Attack(
        name="echoed-secrets", faults="S05 S07 S08", verb="plan", attempts=6,
        source=f"""
            for name, text in {SHAPES!r}.items():
                attempt(name, str, text)
                print(name, text)
        """,
        full=End(same=True, then=_shown_without), none=End(then=_shown_without),
    ),
    Attack(
        name="box-for-everybody", faults="S09",
        source="""
            os.umask(0)
            attempt("umask", write, "./open.txt")
            write(os.environ["RUN_DIR"] + "/evidence.txt")
        """,
        full=End(status="REVIEW", same=True, then=_closed_to_others), none=End(status="REVIEW", then=_closed_to_others),
    ),
)  # fmt: skip


def _no_evidence(story: Story) -> None:
    assert story.tried["meta"] == "HELD"
    assert not [word for word in ("state.json", "INDEX.jsonl", "stream.jsonl", "private") if word in story.said]
