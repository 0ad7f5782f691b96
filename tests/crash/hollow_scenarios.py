"""What is struck of hollow: a cycle with its commons, every book of the memory, a tool's publication, and the operator's desk."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from agents import facts, sweep
from hollow.memory.memory import Memory
from tests.crash import hollow_writer as writer
from tests.crash import worlds
from tests.crash.model import Scenario, World
from tests.support.world import PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_WRITER: Final = (sys.executable, str(PROJECT / "tests" / "crash" / "hollow_writer.py"))
_CYCLE: Final = ("cycle", "cedar", "--mind", "reflex")
_COMMONS: Final = "agent-box/commons"
_DONE: Final = "It is written."


def memory_of(world: World) -> tuple[Memory, list[str]]:
    """The memory of *world*, and the list to which goes what it finds damaged."""
    told: list[str] = []

    def warn(kind: str, **facts: Any) -> None:
        """Note what is damaged."""
        told.append(f"{kind} {facts}")

    return Memory(state_of(world), warn), told


def state_of(world: World) -> Path:
    """The folder of the memory."""
    return world.repo / ".agents" / "hollow"


def _remembered(world: World) -> None:
    """A world in which the first round has been written to every book, and the tool been published."""
    worlds.fresh(world)
    # Without a run: the dashboard shows how the agents are, and nobody draws it anew for what is written here.
    (world.repo / ".git" / "info" / "exclude").write_text("/.agents\n/agent_box\n")
    memory, _ = memory_of(world)
    writer.remember(memory, 1)
    memory.shelf.publish(writer.tool(1))


def _backed_up(world: World) -> None:
    """A world with a backup of its first round, and the second one written since."""
    _remembered(world)
    worlds.ran(world, "hollow", "backup", str(world.path / "first.tar.gz"))
    writer.remember(memory_of(world)[0], writer.ROUNDS)


# --- What must be true ------------------------------------------------------------------------------------------------


def _books(world: World) -> list[str]:
    """Every book can be read, is of the old round or the new, and none shows the new one before those that come first."""
    memory, told = memory_of(world)
    shown = [book.shows(memory) for book in writer.BOOKS]
    named = dict(zip((book.name for book in writer.BOOKS), shown, strict=True))
    found = [f"memory: {each}" for each in told]
    if any(each not in {1, writer.ROUNDS} for each in shown):
        found.append(f"memory: neither the old nor the new: {named}.")
    if shown != sorted(shown, reverse=True):
        found.append(f"memory: something is lost that was written before what is there: {named}.")
    return [*found, *_tidy(world)]


def _tool(world: World) -> list[str]:
    """The tool is whole, as it was or as it is to be."""
    memory, told = memory_of(world)
    # Whoever asks first mends what a killed publication has left.
    number = writer.shelf(memory)
    found = [f"memory: {each}" for each in told]
    if number not in {1, writer.ROUNDS}:
        found.append(f"memory: the tool is {number or 'gone'}: {memory.shelf.news()}.")
    return [*found, *_tidy(world)]


def _tidy(world: World) -> list[str]:
    """Whoever takes the lock next finds no half-written file afterwards, and the next round can be written."""
    memory, told = memory_of(world)
    with memory.files.hold():
        left = [path.name for path in (memory.root / ".halves").glob("*")]
    memory.keys.set("vault", "after", True)
    if not Memory(memory.root).keys.get("vault", "after"):
        told.append("what is written after it is not there")
    return [f"memory: {each} is left half written." for each in left] + [f"memory: {each}" for each in told]


def _new(look: Callable[[World], list[str]], shows: Callable[[Memory], bool]) -> Callable[[World], list[str]]:
    """What *look* finds, and that the new is there: the command has said that it is done."""
    return lambda world: [*look(world), *([] if shows(memory_of(world)[0]) else ["memory: the new is not there."])]


def _request(memory: Memory) -> str:
    return memory.requests.all()[0].request.request_id


def _status(memory: Memory) -> str:
    return memory.requests.all()[0].status


def _answer(world: World) -> list[str]:
    """The request is as it was, or answered, and its agent is told what the operator said."""
    memory, told = memory_of(world)
    entry = memory.requests.all()[0]
    agent = memory.requests.status(writer.WHO, entry.request.request_id)
    found = [f"memory: {each}" for each in told]
    if entry.response is None and entry.status != "pending":
        found.append(f"memory: the request is {entry.status} without an answer.")
    if entry.response is not None and (entry.response.result != _DONE or agent["status"] != entry.status):
        found.append(f"memory: the answer is {entry.response}, and its agent hears {agent}.")
    return [*found, *_tidy(world)]


def _answering(verb: str, option: str) -> Callable[[World], Sequence[str]]:
    def words(world: World) -> list[str]:
        """The desk's own words."""
        request = _request(memory_of(world)[0])
        return ["desk", "requests", verb, request, option, _DONE, "--state", str(state_of(world))]

    return words


def _cycled(world: World) -> list[str]:
    """What the commons hold is what the cycles that ended well have made, each once."""
    there = _COMMONS in world.git("branch", "--format=%(refname:short)").split()
    told = world.git("log", "--format=%(trailers:key=Agent-Run,valueonly)", _COMMONS).split() if there else []
    runs = {each.name: worlds.state(world, each.name) for each in worlds.support.boxes(world.repo)}
    found = [f"commons: {name} is there {told.count(name)} times." for name in {*told} if told.count(name) > 1]
    for name, now in runs.items():
        well = now["status"] in {"DONE", "REVIEW"} and bool((now["patch"] or {}).get("files"))
        if well != (name in told):
            found.append(f"commons: {name} is {now['status']}, and {'' if name in told else 'not '}there.")
    if there and world.run(["git", "fsck", "--strict", "--no-dangling", _COMMONS]).returncode:
        found.append("commons: its objects are not sound.")
    memory, damaged = memory_of(world)
    memory.goals.active("cedar")
    return [*found, *_facts(world), *(f"memory: {each}" for each in damaged)]


def _facts(world: World) -> list[str]:
    """The ledger has told all that the agents have said of themselves, each once and in order."""
    context, found = world.context(), []
    for box in worlds.support.boxes(world.repo):
        meta, state = context.store.meta(box.name), context.store.load(box.name)
        ending, _, _ = sweep.reread(context, meta, state)
        said = [event for event, _ in facts.copied(ending.progress.facts)]
        told = [
            entry["event"] for entry in context.journal.story(box.name) if entry["event"].startswith(facts.FAMILIES)
        ]
        if said != told:
            found.append(f"facts: {box.name} has said {said}, and the ledger tells {told}.")
    return found


def _lived(world: World) -> list[str]:
    """A whole cycle: on the commons, and its airlock put away.

    One whose work found no room in its box is CRASHED and keeps its airlock, because it is nowhere else: a resume then
    carries it over.
    """
    found = _well(world)
    for name in _airlocks(world):
        if (worlds.state(world, name)["failure"] or {}).get("kind") == "export":
            done = world.agent("resume", name)
            found += [f"resume: {done.stdout}{done.stderr}"] if done.returncode else _cycled(world)
    return [*found, *(f"commons: {each} is left." for each in _airlocks(world))]


def _airlocks(world: World) -> list[str]:
    trees = world.repo / "agent_box" / "trees"
    return [path.name for path in trees.iterdir()] if trees.is_dir() else []


def _well(world: World) -> list[str]:
    """A whole cycle on the commons; what its supervisor could not put away it has told of, and the next one does."""
    return [*_cycled(world), *worlds.is_("DONE", "REVIEW")(world)]


def _backup(world: World) -> list[str]:
    """There is a whole backup, or none and no part of one."""
    target = world.path / "backup.tar.gz"
    if left := [path.name for path in world.path.glob(".backup*")]:
        return [f"backup: {left} is left."]
    if not target.exists():
        return []
    done = world.run([*_WRITER, "desk", "restore", str(target), "--state", str(world.path / "trial")])
    return [] if done.returncode == 0 else [f"backup: {done.stderr}"]


def _kept(world: World) -> list[str]:
    """The backup is whole and is there."""
    return _backup(world) if (world.path / "backup.tar.gz").exists() else ["backup: it is not there."]


def _restored(world: World) -> list[str]:
    """The memory is the one of today or the one of the backup, whole."""
    _, told = memory_of(world)
    shown = _rounds(world)
    mixed = [] if shown in ({1}, {writer.ROUNDS}) else [f"memory: rounds {shown} are mixed."]
    aside = [*state_of(world).parent.glob("hollow.before-*"), *state_of(world).parent.glob(".hollow.*")]
    if shown == {1} and not any(writer.BOOKS[0].shows(Memory(each)) == writer.ROUNDS for each in aside):
        mixed.append("memory: what the backup has replaced is nowhere.")
    return [*mixed, *(f"memory: {each}" for each in told)]


def _rounds(world: World) -> set[int]:
    """The rounds that the books show."""
    memory, _ = memory_of(world)
    return {book.shows(memory) for book in writer.BOOKS}


def _is_told(world: World) -> bool:
    return len(memory_of(world)[0].host.unread(writer.WHO)) == writer.ROUNDS


# --- What is typed ----------------------------------------------------------------------------------------------------


def _desk(world: World, *words: str) -> list[str]:
    return ["desk", *words, "--state", str(state_of(world))]


def _remembering(world: World) -> list[str]:
    return ["remember", str(state_of(world))]


def _publishing(world: World) -> list[str]:
    return ["publish", str(state_of(world))]


def _telling(world: World) -> list[str]:
    return _desk(world, "tell", "Round 2")


def _backing_up(world: World) -> list[str]:
    return _desk(world, "backup", str(world.path / "backup.tar.gz"))


def _restoring(world: World) -> list[str]:
    return _desk(world, "restore", str(world.path / "first.tar.gz"))


SCENARIOS: Final = (
    Scenario(
        "cycle", "an agent lives a cycle, which the commons take in, and its airlock is put away", worlds.fresh,
        lambda _world: _CYCLE, expects=("start git update-ref", "write INDEX.jsonl (run.*)", "rename runs/<run>/state.json*"),
        truth=_cycled, again=lambda _world: _CYCLE, end=_lived, claims=_well,
    ),
    Scenario(
        "remember", "every book of the agents' memory is written to, one after the other", _remembered,
        _remembering, again=_remembering, program=_WRITER,
        expects=("write hollow/goals/*", "rename hollow/*", "fsync hollow/*", "link hollow/.halves/*"), truth=_books,
        end=_new(_books, lambda memory: all(book.shows(memory) == writer.ROUNDS for book in writer.BOOKS)),
    ),
    Scenario(
        "publish a tool", "a tool is replaced by a newer one of its name, code first and then its description",
        _remembered, _publishing, again=_publishing, program=_WRITER,
        expects=("rename hollow/tools/dynamic/*.py", "rename hollow/tools/dynamic/*.json", "unlink hollow/tools/replaced/*"),
        truth=_tool, end=_new(_tool, lambda memory: writer.shelf(memory) == writer.ROUNDS),
    ),
    Scenario(
        "fulfil a request", "the operator answers what an agent has asked for", _remembered,
        _answering("fulfil", "--result"), again=_answering("fulfil", "--result"), program=_WRITER, expects=("fsync hollow/*", "write hollow/*"),
        truth=_answer, end=_new(_answer, lambda memory: _status(memory) == "fulfilled"),
    ),
    Scenario(
        "reject a request", "the operator says that it will not be", _remembered,
        _answering("reject", "--reason"), again=_answering("reject", "--reason"), program=_WRITER, expects=("fsync hollow/*", "write hollow/*"),
        truth=_answer, end=_new(_answer, lambda memory: _status(memory) == "rejected"),
    ),
    Scenario(
        "tell", "the operator says something to the agents", _remembered,
        _telling, again=lambda world: None if _is_told(world) else _telling(world), program=_WRITER,
        expects=("write hollow/*",), truth=_tidy,
        end=lambda world: [*_tidy(world), *([] if _is_told(world) else ["memory: the new is not there."])],
    ),
    Scenario(
        "hollow backup", "all that the agents remember is kept in one file", _remembered,
        _backing_up, again=lambda world: None if (world.path / "backup.tar.gz").exists() else _backing_up(world),
        program=_WRITER, expects=("linkat backup.tar.gz", "fsync #[*]"), truth=_backup, end=_kept,
    ),
    Scenario(
        "hollow restore", "a backup is put in the place of the memory, which is kept aside", _backed_up,
        _restoring, again=lambda world: _restoring(world) if _rounds(world) != {1} else None, program=_WRITER,
        expects=("rename *hollow*",), truth=_restored,
        end=_new(_restored, lambda memory: writer.BOOKS[0].shows(memory) == 1),
    ),
)  # fmt: skip
"""Commands of the agents' life and of their operator's desk."""
