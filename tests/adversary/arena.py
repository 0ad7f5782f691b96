"""The arena: a repository worth attacking, an agent that attacks it, and what is left of both afterwards."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import audit
from agents.context import prepare
from tests.support import world

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

TRUST = {"AGENT_BOX_TRUST_UNSANDBOXED": "yes"}
"""The operator's own word that a run without a wall may be merged: the gate's other locks are what is tried then."""

PRELUDE = '''
import contextlib, ctypes, errno, fcntl, json, os, pathlib, pty, shutil, signal, socket, stat, subprocess, sys, time

# Whether /tmp is a sandbox's own: a checkout that lies in it is then not there, and its path leads into memory.
OWN_TMP = os.stat("/tmp").st_dev if os.path.ismount("/tmp") and not os.path.exists(MARK) else None

def reached(word):
    """Whether the path *word* lies in, or leads to, the sandbox's own memory: written there, it has reached nothing."""
    # A link that was made there lies there, wherever it leads.
    places = [word, os.path.dirname(word)] if os.path.islink(word) else [word]
    for path in map(os.path.realpath, places):
        while not os.path.exists(path):
            path = os.path.dirname(path)
        if os.lstat(path).st_dev == OWN_TMP:
            return "MEMORY"
    return "GAINED"

def attempt(what, deed, *args, **more):
    """Try *deed* and tell how it went, in a line of its own."""
    try:
        got = deed(*args, **more)
    except OSError as why:
        print(f"tried|{what}|HELD|{errno.errorcode.get(why.errno, why.errno)}|{why.strerror}", flush=True)
    except (ValueError, AttributeError) as why:
        print(f"tried|{what}|HELD|{type(why).__name__}|{why}", flush=True)
    else:
        paths = [word for word in args if isinstance(word, str) and word[:1] in {"/", "."}]
        print(f"tried|{what}|{reached(paths[-1]) if paths and deed is not read else 'GAINED'}|{str(got)[:200]!r}", flush=True)

def write(path, text="evil\\n", mode="w"):
    with open(path, mode) as file:
        file.write(text)

def read(path, size=4096):
    with open(path, "rb") as file:
        return file.read(size)

def sh(*words, **more):
    """Run a program; its failure is an error with its last words."""
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", **more)
    if done.returncode:
        raise OSError(done.returncode, (done.stderr.strip().splitlines() or ["failed"])[-1])
    return done.stdout.strip()

def config(*words):
    """Set a key in the configuration that all work trees share."""
    return sh("git", "config", "--file", ROOT + "/.git/config", *words)

def supervisor():
    """The pid of the process that supervises this one, if it can be seen at all."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = pathlib.Path("/proc", name, "cmdline").read_bytes().split(b"\\0")
            if any(word.endswith(b"agents/__main__.py") for word in words) and ROOT == os.readlink(f"/proc/{name}/cwd"):
                return int(name)
    raise ProcessLookupError(errno.ESRCH, "no supervisor is to be seen")
'''


@dataclass(frozen=True, slots=True)
class Story:
    """What a run of an attacking agent has come to."""

    done: subprocess.CompletedProcess[str]
    box: Path
    state: dict[str, Any]
    said: str
    """What it printed, on either stream."""

    @property
    def tried(self) -> dict[str, str]:
        """What the agent attempted, and whether it was HELD, GAINED something, or reached a sandbox's MEMORY alone."""
        rows = [line.split("|") for line in self.said.splitlines() if line.startswith("tried|")]
        return {row[1]: row[2] for row in rows}

    @property
    def status(self) -> str:
        return str(self.state["status"])

    @property
    def failure(self) -> str:
        """Kind and sentence of the failure; empty without one."""
        failure = self.state["failure"] or {}
        return f"{failure.get('kind', '')}: {failure.get('message', '')}" if failure else ""

    @property
    def report(self) -> str:
        return (self.box / "report.md").read_text()


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """One repository with its operator, and everything that an agent might want of them."""

    repo: Path
    home: Path
    wall: str
    """The isolation of the runs here: full, partial or none."""
    run: Callable[..., subprocess.CompletedProcess[str]]
    """The command line, as the operator types it."""
    scratch: Path
    """Where the agents' programs lie, outside of the repository."""
    constants: dict[str, Any] = field(default_factory=dict)
    """Names that the agents know."""

    @classmethod
    def make(cls, repo: Path, scratch: Path, wall: str, run: Callable[..., Any]) -> Arena:
        """An arena around *repo*: secrets in the home, a second branch, the box's own folders made."""
        home = Path(os.environ["HOME"])
        _seed_secrets(repo, home)
        world.git(repo, "branch", "side")
        prepare(world.context_of(repo))
        # What the box itself makes of the checkout at its first run is no agent's work.
        (repo / ".claude" / "commands").mkdir(parents=True)
        (repo / ".git" / "agent-box.lock").touch(0o600)
        return cls(repo=repo, home=home, wall=wall, run=run, scratch=scratch)

    @property
    def canary(self) -> Path:
        """The file that is there once planted code has run outside of a sandbox."""
        return self.scratch / "sang"

    def program(self, source: str) -> list[str]:
        """The argv of a program with *source*, which knows where everything is."""
        known = {
            "ROOT": str(self.repo), "HOME": str(self.home), "SONG": f"touch {self.canary}",
            "STATE": os.environ["XDG_STATE_HOME"], "MARK": str(self.scratch / "mark"), "AGENT": list(world.AGENT), **self.constants,
        }  # fmt: skip
        path = self.scratch / f"agent-{hashlib.sha256(source.encode()).hexdigest()[:8]}.py"
        facts = "".join(f"{name} = {value!r}\n" for name, value in known.items())
        (self.scratch / "mark").touch()
        path.write_text(facts + PRELUDE + textwrap.dedent(source))
        return [sys.executable, "-IS", str(path)]

    def attack(self, source: str, *options: str, verb: str = "fix", **more: Any) -> Story:
        """Let an agent with *source* loose through ``./agent <verb>`` and see it through."""
        done = self.run(verb, "an attack", *options, "--engine", "command", "--", *self.program(source), **more)
        return self.story(done)

    def story(self, done: subprocess.CompletedProcess[str]) -> Story:
        """The story of the latest run, which ended as *done* says."""
        newest = world.boxes(self.repo)
        assert newest, done.stderr
        box = max(newest, key=lambda path: path.stat().st_ctime)
        state = json.loads((box / "state.json").read_bytes()) if (box / "state.json").is_file() else {}
        said = [box / "raw" / name for name in ("stream.jsonl", "stderr.log")]
        text = "".join(path.read_text("utf-8", "replace") for path in said if path.is_file())
        return Story(done, box, state, text)

    def command(self, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """A later command of the operator, who has a name and trusts this arena's runs as far as a word goes."""
        env = {**world.IDENTITY, **TRUST, **more.pop("env", {})}
        done = self.run(*words, env=env, **more)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def merge(self, *words: str, box: Path | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
        """The operator approves the patch of *box*, or of the latest run, as it lies there now."""
        where = box or self.repo / ".agents" / "latest"
        patch = where / "changes.patch"
        digest = hashlib.sha256(patch.read_bytes()).hexdigest()
        return self.command("merge", *(words or [where.resolve().name]), "--approve", digest[:16], **more)

    def verified(self) -> int:
        """Exit code of `agent verify`, found without a process where it finds nothing."""
        if not audit.audit(world.context_of(self.repo)).flaws:
            return 0
        return self.command("verify").returncode

    def look_around(self) -> None:
        """What an operator does all day; none of it may crash, whatever an agent has left."""
        for words in (["status"], ["diff"], ["gc"]):
            assert self.command(*words).returncode in {0, 2, 3, 4, 5}, words

    def head(self) -> str:
        return world.git(self.repo, "rev-parse", "HEAD").strip()

    def print(self) -> dict[str, str]:
        """Everything of the operator's that no agent may touch, bit for bit."""
        return {str(path): _print(path) for path in (*_walk(self.repo), *_walk(self.home))}


SECRETS = {
    ".env": "DB_PASSWORD=canary-dotenv-1\n",
    ".ssh/id_ed25519": "canary-ssh-2\n",
    ".aws/credentials": "aws_secret_access_key = canary-aws-3\n",
    ".netrc": "machine example.org password canary-netrc-4\n",
    ".git-credentials": "https://ada:canary-store-5@example.org\n",
    ".config/gh/hosts.yml": "oauth_token: canary-gh-6\n",
}
"""Files with a word in them that nobody but the operator may ever see: the first in the checkout, the others at home."""
HIDDEN_URL = "https://ada:canary-remote-7@example.org/x.git"


def _seed_secrets(repo: Path, home: Path) -> None:
    for name, text in SECRETS.items():
        path = (repo if name == ".env" else home) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    world.git(repo, "remote", "add", "origin", HIDDEN_URL)
    with (repo / ".git" / "info" / "exclude").open("a") as file:
        file.write("/.env\n")


# The box's own data, and what git itself keeps of a new worktree: the box writes there, on purpose.
_OURS = {".agents", "agent_box", ".git/objects", ".git/worktrees", ".git/refs/agent-box", ".git/logs"}


def _walk(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        here = Path(folder)
        names[:] = [name for name in names if str((here / name).relative_to(root)) not in _OURS]
        yield from (here / name for name in (*names, *files))


def _print(path: Path) -> str:
    seen = path.lstat()
    if stat.S_ISLNK(seen.st_mode):
        return f"link {path.readlink()}"
    content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(seen.st_mode) else ""
    return f"{seen.st_mode:o} {content}"
