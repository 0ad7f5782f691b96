"""Which paths of this machine a program needs to read, and which of a checkout nobody should."""

from __future__ import annotations

import contextlib
import os
import pwd
from pathlib import Path

from agents.errors import HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Final

SYSTEM: Final = tuple(map(Path, (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/run/current-system/sw",
    *(f"/etc/{name}" for name in (
        "alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version",
        "fonts", "gai.conf", "group", "host.conf", "hostname", "hosts", "inputrc", "java", "ld.so.cache", "ld.so.conf",
        "ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "lsb-release", "magic", "magic.mime", "mime.types",
        "nsswitch.conf", "os-release", "passwd", "pki", "protocols", "python3", "resolv.conf", "services", "ssl",
        "static", "terminfo", "timezone",
    )),
)))  # fmt: skip
"""What any program may need of the machine, and nothing of it is anybody's secret (sandbox recommendation (a)1)."""

PRIVATE: Final = (Path("/etc/ssl/private"), Path("/etc/pki/tls/private"))
"""Inside of :data:`SYSTEM`, yet keys: an agent of root could read them."""

KERNEL: Final = tuple(map(Path, ("/proc", "/dev", "/sys")))
"""Made anew for a sandbox, never lent to it."""

_SECRETS: Final = (
    ".ssh", ".gnupg", ".aws", ".azure", ".config", ".docker", ".kube", ".netrc", ".git-credentials", ".password-store",
    ".mozilla", ".pki", ".local/share/keyrings", ".claude", ".codex", ".npmrc", ".pypirc", ".bash_history",
)  # fmt: skip
"""Below a home: keys, tokens, sessions (fault S03)."""
_SHARED: Final = frozenset(map(Path, (
    "/", "/home", "/root", "/etc", "/var", "/tmp", "/srv", "/mnt", "/media", "/opt", "/run", "/var/tmp",  # noqa: S108
)))  # fmt: skip
"""Folders that belong to nobody in particular: a tool chain may lie in one, but is never one."""
_MERELY_BIN: Final = frozenset({".local", ".cargo"})
"""Folders of a home in which programs lie beside what is private: ``.cargo/credentials``, ``.local/share/keyrings``."""
_LONGEST_SHEBANG: Final = 512
_DEEPEST_SHEBANG: Final = 4


def program_roots(argv: Sequence[str], environ: Mapping[str, str], root: Path) -> tuple[Path, ...]:
    """What has to be readable so that *argv* runs, in a sandbox that shows nothing but the system and the repository.

    *root* is the repository (an absolute path). A program is looked up on the PATH of *environ*, but never in a folder
    of the repository. Files and folders that a word of *argv* names outside of the repository are readable too: the
    operator typed it. Never the root of the disk, the home, or what contains one of them or the repository.
    """
    keep = _Keep(environ, root)
    found = list(_needs(argv[0], keep, _DEEPEST_SHEBANG)) if argv else []
    for word in argv[1:]:
        found += _named(word, keep)
    return tuple(dict.fromkeys(path for path in found if keep.lendable(path)))


def tool_roots(environ: Mapping[str, str], root: Path | None = None) -> tuple[Path, ...]:
    """The tool chains on the PATH of *environ* that lie outside of the system's folders and of the repository *root*.

    For ``X/bin`` and ``X/shims`` that is X where X is plainly a tool chain's own (it has libraries or versions), else
    the folder alone.
    """
    keep = _Keep(environ, root)
    found: list[Path] = []
    for entry in keep.search:
        if keep.owns(entry) or (root and keep.owns(Path(os.path.realpath(entry)))):
            continue
        whole = _prefix(entry, keep)
        found += [entry] if whole is None else [whole]
        if entry.parent.name == ".cargo":
            found.append(entry.parent.parent / ".rustup")
    return tuple(dict.fromkeys(path for path in found if path.is_dir() and keep.lendable(path)))


class _Keep:
    """What is never lent: the home and what is private in it, the repository, and whatever contains one of them."""

    def __init__(self, environ: Mapping[str, str], root: Path | None) -> None:
        self.homes = _homes(environ)
        self.root = root
        self.search = [
            Path(os.path.normpath(each)) for each in environ.get("PATH", "").split(os.pathsep) if each.startswith("/")
        ]

    def lendable(self, path: Path) -> bool:
        """Whether *path* may be made readable as a whole."""
        real = Path(os.path.realpath(path))
        if _is_nobodys(path) or _is_nobodys(real):
            return False
        # A file is what was named; a folder must not hold, or lie in, what is private.
        private = [home / name for home in self.homes for name in _SECRETS] if path.is_dir() else []
        kept = [*self.homes, *([self.root] if self.root else []), *_there(private)]
        holds = _lies_in(kept, (path, real))
        return not holds and ("node_modules" in path.parts or not _lies_in((path, real), private))

    def owns(self, path: Path) -> bool:
        """Whether *path* lies in the repository."""
        return self.root is not None and path.is_relative_to(self.root)

    def is_plain(self, path: Path) -> bool:
        """Whether *path* in the repository is a file of the project's, reached by no link, and nobody's secret."""
        within = path.relative_to(self.root).parts if self.root else ()
        private = {".git", ".agents", "agent_box"} & set(within) or _is_secret(path.name)
        return (
            path.is_file()
            and not private
            and os.path.realpath(path) == os.path.realpath(self.root or "/") + "".join(f"/{part}" for part in within)
        )


def _is_nobodys(path: Path) -> bool:
    return path in _SHARED or path.is_relative_to("/proc")


def _is_secret(name: str) -> bool:
    """Whether a file called *name* holds settings of a developer's machine (S04)."""
    return name == ".env" or (name.startswith(".env.") and name not in _PUBLIC_ENV)


def _homes(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The homes whose secrets are kept: that of *environ*, which may be an agent's, and the operator's own."""
    named = [environ.get("HOME", ""), os.environ.get("HOME", "")]
    with contextlib.suppress(KeyError):
        named.append(pwd.getpwuid(os.getuid()).pw_dir)
    return tuple(dict.fromkeys(Path(os.path.realpath(each)) for each in named if each.startswith("/")))


def _lies_in(paths: Sequence[Path], folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for path in paths for folder in folders)


def _there(paths: Sequence[Path]) -> Iterator[Path]:
    yield from (path for path in paths if path.exists())


def _needs(program: str, keep: _Keep, depth: int) -> Iterator[Path]:
    """The file of *program*, what it is a link to, its interpreter, and the installation that it is a part of."""
    path = _find(program, keep)
    if path is None:
        return
    real = Path(os.path.realpath(path))
    for file in dict.fromkeys((path, real)):
        yield file
        yield from _installation(file, keep)
    interpreter = _shebang(real)
    if interpreter and depth:
        yield from _needs(interpreter, keep, depth - 1)


def _find(program: str, keep: _Keep) -> Path | None:
    if "/" in program:
        path = Path(os.path.normpath((keep.root or Path("/")) / program))
        return path if path.is_file() else None
    for folder in keep.search:
        found = folder / program
        if found.is_file() and os.access(found, os.X_OK) and not keep.owns(found):
            return found
    return None


def _shebang(path: Path) -> str | None:
    """The interpreter that the first line of *path* names, with ``env`` looked through."""
    try:
        with path.open("rb") as file:
            line = file.read(_LONGEST_SHEBANG).partition(b"\n")[0]
    except OSError:
        return None
    if not line.startswith(b"#!"):
        return None
    words = [word for word in os.fsdecode(line[2:]).split() if "=" not in word]
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
    return words[0] if words else None


def _installation(file: Path, keep: _Keep) -> Iterator[Path]:
    """The folders that the program *file* was installed with."""
    prefix = _prefix(file.parent, keep)
    if prefix is not None:
        yield prefix
    elif file.parent.parent.name == ".local":
        # Packages of the user's own Python.
        yield file.parent.parent / "lib"
    elif file.parent.parent.name == ".cargo":
        yield file.parent.parent.parent / ".rustup"
    parts = file.parts
    if "node_modules" in parts:
        yield Path(*parts[: parts.index("node_modules") + 1])
    yield from _base_of_venv(file.parent.parent / "pyvenv.cfg", keep)


def _base_of_venv(settings: Path, keep: _Keep) -> Iterator[Path]:
    """The Python that a virtual environment stands on, as its *settings* name it."""
    try:
        lines = settings.read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for key, _, value in (line.partition("=") for line in lines):
        home = Path(value.strip())
        # A stranger's file: it is believed where there is a Python, and nothing private.
        if key.strip() == "home" and home.is_absolute() and any(home.glob("python3*")):
            base = Path(os.path.realpath(home))
            yield _prefix(base, keep) or base


def _prefix(folder: Path, keep: _Keep) -> Path | None:
    """The tool chain that a *folder* of programs belongs to; None where it is the system's, or nobody's."""
    above = folder.parent
    if folder.name not in {"bin", "shims"} or above.name in _MERELY_BIN or folder.is_relative_to("/usr"):
        return None
    # Version managers are clones themselves; any other clone is somebody's project, and what lies in it is not known.
    signs = ("libexec", "versions", "pyvenv.cfg", "shims", *(() if (above / ".git").exists() else ("lib", "lib64")))
    own = any((above / name).exists() for name in signs)
    return above if own and keep.lendable(above) else None


def _named(word: str, keep: _Keep) -> Iterator[Path]:
    """The file or folder that *word*, or what follows its first ``=``, names.

    In the repository a file alone, by its absolute name: a script that is not tracked is not in an airlock.
    """
    for text in dict.fromkeys((word, word.partition("=")[2] if word.startswith("-") else word)):
        path = Path(os.path.normpath((keep.root or Path("/")) / text))
        if not text or "\0" in text or not _is_there(path):
            continue
        # By its spelling: a link inside of the repository is a stranger's, and must not choose what is readable.
        if not keep.owns(path) or (text.startswith("/") and keep.is_plain(path)):
            yield path


def _is_there(path: Path) -> bool:
    try:
        return path.is_file() or path.is_dir()
    except OSError:
        # Words may be anything, also longer than a path can be.
        return False


_PUBLIC_ENV: Final = frozenset({".env.test", ".env.example", ".env.sample", ".env.template", ".env.dist"})
_MOST_SECRETS: Final = 1000
_NOT_ENTERED: Final = frozenset({
    ".git", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox", ".mypy_cache", ".ruff_cache",
    ".pytest_cache", ".agents", "agent_box",
})  # fmt: skip
"""Made by tools or by the box; large, and what lies in them is not the operator's hand-written secret."""


def secrets_in(root: Path, *, links: bool = True) -> tuple[Path, ...]:
    """The ``.env`` files of the checkout *root*, tracked or not, but for those that are meant as examples (S04).

    Also the settings of repositories within it. Without *links* a link of such a name is passed over: in a tree that an
    agent had, it would choose what else is hidden. Raises HostError where there are more than any project has.

    The disk is asked, not git: an airlock's own `.git` is the agent's to forge, and a throw-away tree has none.
    """
    found: list[Path] = []
    todo = [str(root)]
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    secret = _secret_at(entry, root, links=links)
                    if secret is not None:
                        found.append(secret)
                    elif entry.name not in _NOT_ENTERED and entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
        except OSError:
            # A folder that this user may not read, or that has just gone, hides itself.
            continue
        if len(found) > _MOST_SECRETS:
            raise HostError(f"There are more than {_MOST_SECRETS} .env files in {root}.", "Look: git status --ignored")
    return tuple(sorted(found))


def _secret_at(entry: os.DirEntry[str], root: Path, *, links: bool) -> Path | None:
    """The file at *entry* of the checkout *root* that must not be read, or None."""
    if _is_secret(entry.name) and (links or not entry.is_symlink()):
        return Path(entry.path)
    if entry.name == ".git" and entry.path != f"{root}/.git":
        return Path(entry.path, "config")
    return None
