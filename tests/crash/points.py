"""The points of the matrix, as the kernel tells them: what a command does to its world, call by call, read from strace."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from tests.crash.model import Point, Scenario, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

FILES: Final = (
    "write", "pwrite64", "writev", "splice", "sendfile", "copy_file_range", "ftruncate", "truncate", "fallocate",
    "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat", "rmdir",
    "mkdir", "mkdirat", "mknod", "mknodat", "chmod", "fchmod", "fchmodat", "utimensat", "fsync", "fdatasync", "openat",
)  # fmt: skip
"""System calls that change a file system, or make a change last. Those that a machine does not know are left out."""
PROCESSES: Final = (
    "vfork",
    "fork",
    "clone",
    "clone3",
    "rt_sigprocmask",
    "kill",
    "pidfd_send_signal",
    "sendto",
    "sendmsg",
    "exit_group",
)
"""System calls by which the supervisor starts, tells and ends processes.

Signals are let in again as soon as another process is at work. How often one is looked at until it is over is chance, and
that nobody looks any more changes nothing: waiting is no point.
"""
EFFECTS: Final = FILES + PROCESSES

STARTS: Final = frozenset({"vfork", "fork", "clone", "clone3"})
"""System calls by which a process starts another one."""
_TOLD: Final = frozenset({"sendto", "sendmsg"})
_LINE: Final = re.compile(r"^(?:(\d+) +)?([a-z0-9_]+)\((.*)$")
_RESULT: Final = re.compile(r"\)\s+= (-?\d+|\?)")
_PART: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|(?:AT_FDCWD|\d+)<((?:[^>\\]|\\.)*)>')
_RUN: Final = re.compile(r"\d\d-\d\d-\d\d_\d{4}__[^/]*?__([0-9a-f]{4,64})")
_CHANCE: Final = (
    (re.compile(r"\b[0-9a-f]{8,64}\b"), "*"),
    (re.compile(r"/objects/[0-9a-f]{2}\b"), "/objects/*"),
    (re.compile(r"run_[0-9a-f]{4,}\b"), "run_<id>"),
    (re.compile(r"\b(scout|plan|summarize|merge|apply)_[0-9a-f]{4,}\.md"), "<command>.md"),
    (re.compile(r"/(active|ids)/\.?[0-9a-f]{4,}\b"), r"/\1/<id>"),
    (re.compile(r"/\.[0-9a-f]{4}\.\*\.tmp"), "/.<id>.*.tmp"),
    (re.compile(r"\b(tmp|agent-box-)[a-z0-9_]{8}\b"), r"\1*"),
    (re.compile(r"#\d+\b"), "#*"),
    (re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z?(-\d+)?"), "<time>"),
)  # fmt: skip
_STATE: Final = re.compile(r'status\\": \\"(\w+)\\",\\n +\\"phase\\": \\"(\w+)')
_EVENT: Final = re.compile(r'event\\":\\"([a-z._]+)')
SHOWN: Final = 160
"""Bytes of what is written that strace shows: enough for a status, or the name of a ledger event."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One call of the log: the *nth* (from 1) of its kind."""

    call: str
    nth: int
    label: str
    """Empty where the call is no point: it failed, or it concerns nothing of the world."""


@dataclass(frozen=True, slots=True)
class Log:
    """A log of strace, and what it takes to read it."""

    path: Path
    world: World
    started: Sequence[str]

    def read(self) -> list[Seen]:
        """Every call, in order."""
        return list(read(lines_of(self.path), self.world, self.started))


@cache
def why_not() -> str:
    """Why nothing can be traced here, or nothing."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    done = subprocess.run(["strace", "-qq", "-e", "trace=none", "true"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"strace may not trace here: {done.stderr.strip()[:200]}"


def traced(argv: Sequence[str], log: Path, *inject: str, following: bool = False) -> list[str]:
    """*argv* under strace, which writes the supervisor's own calls to *log*; *inject* are its ``--inject`` words.

    *following* is to include every process that it starts: calls are counted in each by itself, too.
    The mark ``?`` before a name leaves out a call that this machine's kernel does not have.
    """
    calls = ",".join(f"?{name}" for name in EFFECTS)
    more = ("-f", "-e", f"trace={calls},execve") if following else ("-e", f"trace={calls}")
    words = ["strace", "-qq", "-y", "-s", str(SHOWN), "-o", str(log), *more]
    return [*words, *(f"--inject={each}" for each in inject), "--", *argv]


def read(lines: Iterable[str], world: World, started: Sequence[str] = ()) -> Iterator[Seen]:
    """Every call in *lines* of a log, in order; *started* names the programs that are started, in order."""
    counts: Counter[str] = Counter()
    reader = _Reader(world, started)
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            continue
        call, rest = match[2], match[3]
        counts[call] += 1
        result = _RESULT.search(rest)
        failed = result is not None and result[1].startswith("-")
        yield Seen(call, counts[call], "" if failed else reader.label(call, rest))


class _Reader:
    """Turns calls into labels; remembers what a rename needs to know of the write before it."""

    def __init__(self, world: World, started: Sequence[str]) -> None:
        self._roots = (f"{world.repo}/", f"{world.home}/", f"{world.path}/")
        self._started = started
        self._starts = 0
        self._just_started = False
        self._content: dict[str, str] = {}

    def label(self, call: str, rest: str) -> str:
        """What the *call* is about to do, or nothing where it is no point."""
        if call in PROCESSES:
            return self._process(call, rest)
        if call == "write" and re.match(r"\d+<(pipe|socket)", rest):
            # What is said to the operator changes nothing; what is fed to a child may, and what a guard tells.
            told = re.match(r'\d+<socket[^"]*"(\w+)', rest)
            said = f"tell {told[1]}" if told else f"feed {self._last()}"
            return "" if rest[:2] in {"1<", "2<"} else said
        parts = _PART.findall(rest)
        if call == "openat" and not ("O_CREAT" in rest or "O_TRUNC" in rest):
            return ""
        places = self._places(call, parts)
        if not places or not all(places):
            return ""
        told = _told(rest) if call in {"write", "pwrite64"} else ""
        subject = places[-1]
        if told:
            self._content[subject] = told
        if call.startswith("rename"):
            self._content[subject] = told = self._content.get(places[0], "")
        verb = {"openat": "create", "pwrite64": "write"}.get(call, call)
        return f"{verb} {subject}" + (f" ({told})" if told else "")

    def _process(self, call: str, rest: str) -> str:
        just_started, self._just_started = self._just_started, call in STARTS
        if call in STARTS:
            self._starts += 1
            return f"start {self._last()}"
        if call == "rt_sigprocmask":
            return f"while {self._last()} works" if just_started else ""
        if call in _TOLD:
            return "tell " + rest.split(", ")[1].strip('"')[:1] if "<socket" in rest or "<UNIX" in rest else ""
        return "exit" if call == "exit_group" else "signal a process"

    def _last(self) -> str:
        named = self._starts <= len(self._started)
        return self._started[self._starts - 1] if self._starts and named else "a process"

    def _places(self, call: str, parts: Sequence[tuple[str, str]]) -> list[str]:
        """Where in the world the call's effect is, as labels; an empty string for a place outside."""
        if call in {"write", "pwrite64", "writev", "fsync", "fdatasync", "ftruncate", "fchmod", "fallocate"}:
            return [self._place(opened) for text, opened in parts[:1]]
        if call in {"splice", "sendfile", "copy_file_range"}:
            opened = [place for _, place in parts if place]
            return [self._place(opened[1 if call != "sendfile" else 0])] if len(opened) > 1 else []
        names: list[str] = []
        folder = ""
        for text, opened in parts:
            if opened:
                folder = opened
            else:
                names.append(text if text.startswith("/") else f"{folder}/{text}" if folder else text)
                folder = ""
        if call.startswith(("symlink", "link")):
            # What a name is given to may have none itself.
            names = names[1:]
        return [self._place(name) for name in (names[:1] if call == "openat" else names)]

    def _place(self, path: str) -> str:
        """*path* below the repository or the home, without what chance or time chose; empty outside."""
        if not path.startswith("/"):
            path = f"{self._roots[0]}{path}"
        root = next((root for root in self._roots if path.startswith(root)), None)
        if root is None:
            return ""
        return plain(("~/" if root == self._roots[1] else "") + path.removeprefix(root).removesuffix(" (deleted)"))


def plain(path: str) -> str:
    """*path* without what differs between two runs of the same command."""
    path = _RUN.sub("<run>", path)
    for pattern, instead in _CHANCE:
        path = pattern.sub(instead, path)
    return path.removeprefix(".agents/")


def _told(rest: str) -> str:
    """What a written state or ledger line says, in a word or two."""
    if state := _STATE.search(rest):
        return f"{state[1]} {state[2]}"
    event = _EVENT.search(rest)
    return event[1] if event else ""


def programs(lines: Iterable[str]) -> list[str]:
    """Names of the programs that the first process of a log with ``-f`` started, in order."""
    first, children, names = "", [], defaultdict[str, str](str)
    for line in lines:
        match = re.match(r"^(\d+) +([a-z0-9_]+)\((.*)$", line) or re.match(
            r"^(\d+) +<\.\.\. ([a-z0-9_]+) resumed>(.*)$", line
        )
        if match is None:
            continue
        pid, call, rest = match.groups()
        first = first or pid
        result = re.search(r"\)\s+= (\d+)", rest)
        if pid == first and call in STARTS and result:
            children.append(result[1])
        elif call == "execve" and pid != first and not names[pid]:
            names[pid] = program_of(rest)
    return [names[child] or "a process" for child in children]


def program_of(execve: str) -> str:
    """Name of the program that the call *execve* starts; empty where it does not say."""
    # The words may hold brackets; what follows them is the environment, by its address.
    found = re.search(r"\[(.*)\], 0x", execve)
    argv = re.findall(r'"((?:[^"\\]|\\.)*)"', found[1]) if found else []
    return _named(argv) if argv else ""


def _named(argv: Sequence[str]) -> str:
    """A program by its name, git by its command, Python by its script."""
    name = argv[0].rpartition("/")[2]
    words = [word for word in argv[1:] if re.fullmatch(r"[a-z][a-z-]+", word)]
    if name == "git" and words:
        return f"git {words[0]}"
    scripts = [word.rpartition("/")[2] for word in argv[1:] if word.endswith(".py")]
    return scripts[0] if name.startswith("python") and scripts else plain(name)


def started_by(scenario: Scenario, world: World, template: Path, log: Path) -> list[str]:
    """Names of the programs that *scenario* starts, in order: found by following it once into its children."""
    calls = ",".join(("execve", *(f"?{name}" for name in sorted(STARTS))))
    following = ["strace", "-qq", "-f", "-s", "200", "-o", str(log), "-e", f"trace={calls}", "--"]
    through(scenario, world, template, lambda argv: [*following, *argv])
    return programs(lines_of(log))


def of_command(scenario: Scenario, world: World, template: Path, log: Path) -> list[Point]:
    """All points of the command itself, in order, named by the programs that it starts."""
    return enumerated(scenario, world, template, log, started_by(scenario, world, template, log))


def enumerated(scenario: Scenario, world: World, template: Path, log: Path, started: Sequence[str] = ()) -> list[Point]:
    """All points of *scenario*, in order, found by running it from *template*, traced as every strike will be.

    strace counts only what it traces, so the number of a call is good for the same traced calls alone.
    """
    through(scenario, world, template, lambda argv: traced(argv, log))
    seen = [each for each in read(lines_of(log), world, started) if each.label]
    before = ["", *(each.label for each in seen)]
    return [Point(each.call, each.nth, each.label, last) for each, last in zip(seen, before, strict=False)]


def through(scenario: Scenario, world: World, template: Path, how: Callable[[list[str]], list[str]]) -> None:
    """Run the command of *scenario* to its end, unstruck; raises AssertionError where it does not end as it should."""
    world.restore(template)
    scenario.arm(world)
    done = world.run(how(scenario.argv(world)))
    assert done.returncode in scenario.exits, f"{scenario.name}: {done.returncode}: {done.stdout}{done.stderr}"
    assert not world.quiet(), f"{scenario.name}: processes are left"


def lines_of(log: Path) -> list[str]:
    """The lines of a log; bytes that are no text are replaced."""
    return log.read_text("utf-8", "replace").splitlines() if log.exists() else []


def thinned(points: Sequence[Point]) -> list[Point]:
    """*points* without most repetitions: of each label of a process the first, the middle and the last."""
    by_label = defaultdict[tuple[str, str], list[Point]](list)
    for point in points:
        by_label[point.process, point.label].append(point)
    kept = {id(each) for same in by_label.values() for each in (same[0], same[len(same) // 2], same[-1])}
    return [point for point in points if id(point) in kept]


def spread(points: Sequence[Point], count: int) -> list[Point]:
    """*count* of *points*, evenly spread from the first to the last."""
    if count >= len(points):
        return list(points)
    step = (len(points) - 1) / max(1, count - 1)
    return [points[round(number * step)] for number in range(count)]
