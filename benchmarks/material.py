"""Builds what is measured with: repositories, histories of finished runs, streams; the same bytes every time."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agents import ledger, naming, plan, policy
from agents.layout import Layout
from agents.model import Phase, RunMeta, RunState, Status
from agents.store import Store
from agents.times import iso
from essentials import records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

EDITION: Final = 4
"""Raise it when anything here builds other bytes: older material is then left alone and not used."""
_EPOCH: Final = 1_735_689_600
"""2025-01-01T00:00:00Z, when all material was made."""
_SETTLE: Final = 1.2
"""Seconds after which git believes the times in its index; within the same second it reads every file again."""
_VOCABULARY: Final = (
    "account batch buffer cache client commit config connection cursor daemon decode deploy digest engine event export "
    "fetch filter flush format gateway handler header import index invoice journal latency ledger limit loader lock "
    "logger merge message metric migrate monitor network order packet parser patch policy pool price probe query queue "
    "record render report request resolve response retry route schema search session signal socket stream sweep table "
    "task throttle timeout token trace transfer update upload user validate vector version watch window worker"
)
_WORDS: Final = _VOCABULARY.split()
_COMMITS: Final = 30
_PER_COMMIT: Final = 5


class Material:
    """Material in the folder *cache*, built when it is first asked for and never deleted.

    Deleting would falsify what follows: some file systems pass over every freed inode when the next file is made.
    """

    def __init__(self, cache: Path) -> None:
        self._cache = cache.absolute()

    @property
    def folder(self) -> Path:
        """Where all of it is."""
        return self._cache

    @property
    def home(self) -> Path:
        """A home folder without any settings."""
        return self.made("home", lambda place: place.mkdir())

    def repository(self, files: int, use: str = "") -> Path:
        """A git repository of *files* Python modules with a history of some commits; another one for another *use*."""
        return self.made(f"repository{use}-{files}", lambda place: _repository(place, files))

    def history(self, runs: int) -> Path:
        """A git repository of one file with *runs* finished runs."""
        return self.made(f"history-{runs}", lambda place: _history(place, runs))

    def boxes(self, runs: int) -> Path:
        """Like :meth:`history`, and every box has the evidence that its ledger entry seals."""
        return self.made(f"boxes-{runs}", lambda place: _history(place, runs, whole=True))

    def stream(self, kind: str, size: int) -> Path:
        """A recorded stream of about *size* bytes (at least one line) of the *kind* of lines of :data:`STREAMS`."""
        return self.made(f"stream-{kind}-{size}", lambda place: _stream(place, kind, size))

    def engine(self) -> Path:
        """A folder for ``sys.path`` that brings the engine of ``benchmarks/drivers/supervisor.py``."""
        return self.made("engine", _engine)

    def fresh(self, stem: str) -> Path:
        """A file name that nothing has: writing over an old file costs what writing a new one does not."""
        self._cache.mkdir(parents=True, exist_ok=True)
        return self._cache / f"{stem}-{os.getpid()}-{time.monotonic_ns()}"

    def made(self, name: str, build: Callable[[Path], None]) -> Path:
        """The material *name*, which *build* makes at the path that it is given where there is none yet."""
        place = self._cache / f"{name}-{EDITION}"
        if not place.exists():
            # Whole or not at all, so that an interrupted session leaves nothing that a later one would believe.
            staging = self.fresh(".new")
            build(staging)
            staging.rename(place)
        return place


# --- Repositories -----------------------------------------------------------------------------------------------------


def _repository(place: Path, files: int) -> None:
    paths = [f"src/{_WORDS[n % len(_WORDS)]}_{n // 100}/{_word(n, 1)}_{n}.py" for n in range(files)]
    _import(place, _commits(paths))
    time.sleep(_SETTLE)
    # Written anew when all files are older than it, or every later look at the repository would read them again.
    _git(place, "update-index", "--force-write-index")


def _commits(paths: list[str]) -> Iterator[bytes]:
    """A stream for `git fast-import`: one commit with everything, then a few that change some files."""
    yield from _commit(0, "start", ((path, _module(number, 0)) for number, path in enumerate(paths)))
    for number in range(1, _COMMITS + 1):
        some = random.Random(number).sample(range(len(paths)), min(_PER_COMMIT, len(paths)))
        message = f"fix the {_word(number, 2)} of the {_word(number, 3)} {_word(number, 4)}"
        yield from _commit(number, message, ((paths[each], _module(each, number)) for each in some))


def _commit(number: int, message: str, contents: Iterator[tuple[str, bytes]] | Any) -> Iterator[bytes]:
    yield b"commit refs/heads/main\ncommitter Bench <bench@localhost> %d +0000\n" % (_EPOCH + number * 3600)
    yield b"data %d\n%s\n" % (len(message.encode()), message.encode())
    for path, content in contents:
        yield b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(content), content)


def _module(number: int, revision: int) -> bytes:
    """A module of some functions, about a kilobyte and a half: the median of what real repositories track."""
    chance = random.Random(number * 1000 + revision)
    lines = [f'"""{chance.choice(_WORDS).title()} of the {chance.choice(_WORDS)} {number}."""', "", "import os", ""]
    for place in range(chance.randint(3, 9)):
        verb, noun, other = chance.sample(_WORDS, 3)
        lines += [
            "", f"def {verb}_{noun}_{place}({other}, limit={chance.randint(1, 999)}):",
            f'    """{verb.title()} every {noun} of {other} until the {chance.choice(_WORDS)} is full."""',
            f"    for {noun} in {other}:", f"        if {noun}.{chance.choice(_WORDS)} > limit:",
            f"            return os.path.join({noun}, {other!r})", "    return None", "",
        ]  # fmt: skip
    return "\n".join(lines).encode()


def _word(number: int, salt: int) -> str:
    return random.Random(number * 7 + salt).choice(_WORDS)


def _import(place: Path, stream: Iterator[bytes]) -> None:
    """Make a repository at *place* from a `git fast-import` *stream*, checked out."""
    place.mkdir()
    _git(place, "init", "-q", "-b", "main")
    with subprocess.Popen(["git", "fast-import", "--quiet"], cwd=place, env=_environ(), stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        child.stdin.writelines(stream)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, "git fast-import")
    _git(place, "reset", "-q", "--hard")


def _git(place: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=place, env=_environ(), check=True, stdout=subprocess.DEVNULL)


def _environ() -> dict[str, str]:
    # Nobody's settings: a template or an attribute would make it another repository.
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


# --- Finished runs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Finished:
    """One finished run: its names, its state and what its ledger entries say."""

    name: str
    short_id: str
    state: RunState
    facts: tuple[dict[str, Any], dict[str, Any]]
    """At its start and at its end."""


def finished_runs(count: int) -> Iterator[Finished]:
    """*count* finished runs, one a minute, in the form that the box gives them."""
    for number in range(count):
        task = f"why is the {_word(number, 5)} of {_word(number, 6)} {_word(number, 7)} slow"
        yield _finished(number, task, f"{number:06x}")


def _finished(number: int, task: str, short_id: str) -> Finished:
    start = _EPOCH + 60.0 * number
    slug = naming.slugify(task)
    name = f"{time.strftime('%y-%m-%d_%H%M', time.gmtime(start))}__{slug}__{short_id}"
    tools = policy.tier("scout").tools
    meta = RunMeta(
        run_name=name, short_id=short_id, run_type="scout", task=task, slug=slug, repo_sha_start="5" * 40, dirty=False,
        engine="hollow", model=None, engine_version="0.1.0", agent="cedar", mind="reflex", tools_allowlist=tools,
        safe_commands=(), human_only_commands=(), config_hash="02b3ee81", commands_digest="", isolation="none",
        created_at=iso(start),
    )  # fmt: skip
    begun = RunState(started_at=iso(start), model="reflex", config_hash=meta.config_hash, boot_id="b", host_id="h")
    state = records.replace(
        begun, status=Status.DONE, phase=Phase.SETTLED, ended_at=iso(start + 42), exit_code=0, events=6, revision=6,
        session_id="58b1cb51-ad36-4a11-8cc8-f9691dc97602", usage={"input_tokens": 0, "output_tokens": 0},
    )  # fmt: skip
    sealed = {each: hashlib.sha256(_sealed(name, each)).hexdigest() for each in _SEALED}
    return Finished(name, short_id, state, (plan.facts(meta, begun), {**plan.facts(meta, state), "evidence": sealed}))


def _sealed(name: str, each: str) -> bytes:
    """Content of the file *each* of the box *name*."""
    return f"{name} {each}".encode()


_SEALED: Final = ("meta.yaml", "report.md", "raw/stream.jsonl", "raw/stderr.log", "raw/launch.json")


def _history(place: Path, runs: int, *, whole: bool = False) -> None:
    _import(place, _commits(["main.py"]))
    layout = Layout(place)
    store = Store(layout)
    store.prepare()
    head = ledger.Head()
    with layout.ledger.open("wb") as file:
        for run in finished_runs(runs):
            _box(layout, run)
            if whole:
                _evidence(layout.runs / run.name)
            for event, facts in zip(("run.started", "run.finished"), run.facts, strict=True):
                time_ = facts["ended_at"] or facts["started_at"]
                line, head = ledger.link(head, time=time_, event=event, run=run.name, facts=facts)
                file.write(line)
        if runs:
            store.point("latest", run.name)


def _box(layout: Layout, run: Finished) -> None:
    """What a sweep or a lookup could trip over: the box with its state and the name's short id."""
    folder = layout.runs / run.name
    folder.mkdir()
    (folder / "state.json").write_bytes(run.state.to_json())
    (layout.ids / run.short_id).write_bytes(run.name.encode())


def _evidence(folder: Path) -> None:
    (folder / "raw").mkdir()
    for each in _SEALED:
        (folder / each).write_bytes(_sealed(folder.name, each))


# --- Streams ----------------------------------------------------------------------------------------------------------


def _small(_: int) -> Iterator[bytes]:
    """Lines of about 120 bytes, as a chatty program prints them."""
    return itertools.cycle([b"".join(_long(120 + number % 8)) for number in range(8)])


def _typical(_: int) -> Iterator[bytes]:
    """A coding agent's session: sizes as they were seen in real ones (median 450 bytes, one in a hundred over 5 kB)."""
    chance = random.Random(1)
    block = [_event(chance, number) for number in range(5000)]
    init = json.dumps({"type": "system", "subtype": "init", "session_id": "s"}).encode() + b"\n"
    return itertools.chain([init], itertools.cycle(block))


def _event(chance: random.Random, number: int) -> bytes:
    text = _prose(number, min(46_000, int(chance.lognormvariate(5.6, 1.2)))).decode()
    usage = {"usage": {"input_tokens": number, "output_tokens": len(text)}} if chance.random() < 0.43 else {}
    block: dict[str, Any] = chance.choice([
        {"type": "text", "text": text},
        {"type": "tool_use", "id": f"toolu_{number}", "name": "Grep", "input": {"pattern": text}},
        {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text},
    ])  # fmt: skip
    role = "user" if block["type"] == "tool_result" else "assistant"
    message = {"id": f"msg_{number}", "role": role, "content": [block], **usage}
    return json.dumps({"type": role, "message": message, "session_id": "s"}).encode() + b"\n"


def _wide(_: int) -> Iterator[bytes]:
    """Lines of a mebibyte."""
    return itertools.repeat(b"".join(_long(1024 * 1024)))


def _long(size: int) -> Iterator[bytes]:
    """One line of *size* bytes with its end, in pieces."""
    head, tail = b'{"type":"assistant","message":{"content":[{"type":"text","text":"', b'"}]}}\n'
    left = size - len(head) - len(tail)
    yield head
    while left > 0:
        yield (piece := _prose(1, min(left, 65536)))
        left -= len(piece)
    yield tail


def _prose(seed: int, size: int) -> bytes:
    """*size* bytes of words."""
    words = random.Random(seed).choices(_WORDS, k=min(size // 4 + 1, 4096))
    text = " ".join(words).encode() + b" "
    return (text * (size // len(text) + 1))[:size]


STREAMS: Final[dict[str, Callable[[int], Iterator[bytes]]]] = {
    "small": _small, "typical": _typical, "wide": _wide, "huge": _long,
}  # fmt: skip
"""Pieces of a stream for its size, by the kind of its lines; no piece is large, or building would grow this process."""
_RESULT: Final = b'{"type":"result","subtype":"success","is_error":false,"result":"done","num_turns":3,"usage":{}}\n'


def _stream(place: Path, kind: str, size: int) -> None:
    written = 0
    with place.open("wb") as file:
        for piece in STREAMS[kind](size):
            written += file.write(piece)
            if written >= size:
                break
        file.write(_RESULT)


def _engine(place: Path) -> None:
    folder = place / "bench_engine-1.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: bench-engine\nVersion: 1\n", "utf-8")
    names = (("replay", "Replay"), ("heard", "Heard"))
    points = "".join(f"{name} = benchmarks.drivers.supervisor:{each}\n" for name, each in names)
    (folder / "entry_points.txt").write_text(f"[agent_box.engines]\n{points}", "utf-8")
