"""Worlds that are struck: repositories with runs in every state, made by the real command line, and what may be true of them."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.crash import points
from tests.support import world as support

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.crash.model import World

EDITED: Final = "notes.txt"
"""A file that the operator has not committed; nothing may touch it."""
AGENT: Final = """
import os, sys, time
if os.path.isdir("shop"):
    open("whole.txt", "w").write("whole\\n")
    if "edited" not in open("shop/cart.py").read() and os.path.exists(".git") and os.path.isfile(".git"):
        open("shop/cart.py", "a").write("# edited\\n")
print("looked", flush=True)
"""
STOPPER: Final = """
import os, signal, time
guard = os.getppid()
supervisor = int(open(f"/proc/{guard}/stat").read().rpartition(")")[2].split()[1])
os.kill(supervisor, signal.SIGTERM)
time.sleep(300)
"""
KILLER: Final = AGENT + STOPPER.replace("SIGTERM", "SIGKILL")
SCOUT: Final = "print('nothing found', flush=True)\n"
SLOW: Final = "import time\nprint('waiting', flush=True)\ntime.sleep(300)\n"
LARGE: Final = 2100
"""Files that are removed behind the operator's back."""
BUILDER: Final = f"""{AGENT}
if os.path.isfile(".git"):
    os.mkdir("build")
    for number in range({LARGE}):
        open(f"build/{{number:08x}}", "w").close()
"""
PROGRAMS: Final = {
    "agent.py": AGENT, "builder.py": BUILDER, "scout.py": SCOUT, "slow.py": SLOW, "stopper.py": STOPPER, "killer.py": KILLER,
}  # fmt: skip


def fresh(world: World) -> None:
    """A repository with an operator's edits in it, and programs for its agents beside it."""
    world.home.mkdir(parents=True)
    world.repo.mkdir(parents=True)
    support.make_repo(world.repo)
    (world.repo / EDITED).write_text("mine\n")
    for name, text in PROGRAMS.items():
        (world.path / name).write_text(text)


def ran(world: World, *words: str, codes: Sequence[int] = (0,)) -> None:
    """Run a command of the preparation; raises AssertionError where it does not end as it should."""
    done = world.agent(*words)
    assert done.returncode in codes, f"{words}: {done.returncode}: {done.stdout}{done.stderr}"


def program(world: World, name: str) -> list[str]:
    """The words that give a run its program."""
    return ["--engine", "command", "--", sys.executable, "-IS", str(world.path / name)]


def fixed(world: World) -> None:
    """A world in which a fix waits for review."""
    fresh(world)
    ran(world, "fix", "mend it", *program(world, "agent.py"))


def built(world: World) -> None:
    """A world in which a fix waits for review whose agent has made many files that git ignores."""
    fresh(world)
    with (world.repo / ".git" / "info" / "exclude").open("a") as exclude:
        exclude.write("/build/\n")
    ran(world, "fix", "mend it", *program(world, "builder.py"))


def merged(world: World) -> None:
    """A world in which a fix has been merged."""
    fixed(world)
    ran(world, "merge", "latest", "--approve", approval(world))


def approval(world: World) -> str:
    """What approves the latest run's patch without a terminal."""
    return str(state(world)["patch"]["sha256"])[:16]


def merging(*more: str) -> Callable[[World], list[str]]:
    """The words of a merge of the run ``last-review``."""
    return lambda world: ["merge", "last-review", "--approve", approval(world), *more]


def state(world: World, name: str = "") -> dict[str, Any]:
    """state.json of the run *name*, or of the newest."""
    box = world.repo / ".agents" / "runs" / name if name else newest(world)
    found: dict[str, Any] = json.loads((box / "state.json").read_bytes())
    return found


def newest(world: World) -> Path:
    """The newest box; the names of two that were begun in one minute do not tell."""
    begun = {box: str(support.state_of(world.repo, box)["started_at"]) for box in support.boxes(world.repo)}
    return max(begun, key=lambda box: begun[box])


def settings(world: World, text: str) -> None:
    """agent.yaml of the operator, which git does not see."""
    (world.repo / "agent.yaml").write_text(text)
    exclude = world.repo / ".git" / "info" / "exclude"
    exclude.write_text(
        "".join(f"/{name}\n" for name in ("agent.yaml", ".agents", "agent_box", ".claude/commands/run_*/"))
    )


# --- Worlds to begin with ---------------------------------------------------------------------------------------------


def failing(world: World) -> None:
    """A world whose checks fail."""
    fresh(world)
    settings(world, "check: 'test -e checked.txt'\n")


def crashed(world: World) -> None:
    """A world in which a fix has failed its check, and would no longer."""
    failing(world)
    ran(world, "fix", "mend it", *program(world, "agent.py"), codes=(3,))
    settings(world, "check: 'test -e whole.txt'\n")


def abandoned(world: World) -> None:
    """A world in which a fix's supervisor was killed while its agent was at work."""
    fresh(world)
    done = world.agent("fix", "mend it", *program(world, "killer.py"))
    assert done.returncode < 0, done.stderr
    assert not world.quiet()


def conflicting(world: World) -> None:
    """A world in which a fix waits for review and the operator has committed something else in its place."""
    fixed(world)
    (world.repo / "shop" / "cart.py").write_text("# rewritten\n")
    world.git("commit", "-qam", "rewrite the cart")


def old(world: World) -> None:
    """A world with finished runs, one of which still has its airlock, and one that waits for review."""
    fixed(world)
    for _ in range(2):
        ran(world, "scout", "look", *program(world, "scout.py"))
    ran(world, "fix", "mend it again", *program(world, "agent.py"))
    kept = Path(str(state(world)["worktree_path"]))
    work, registration = world.repo / kept, world.repo / ".git" / "worktrees" / kept.name
    copies = [(each, world.path / f"kept-{number}") for number, each in enumerate((work, registration))]
    for each, copy in copies:
        shutil.copytree(each, copy, symlinks=True)
    ran(world, "reject", "latest")
    # As if the machine had failed between the rejection and the removal of the airlock.
    for each, copy in copies:
        each.parent.mkdir(exist_ok=True)
        copy.rename(each)


def compared(world: World) -> None:
    """A world in which what two agents made of one task waits for a human to pick."""
    fresh(world)
    ran(world, "fix", "mend it", "--agents", "2", *program(world, "agent.py"))


def picked(world: World) -> None:
    """A world in which the work of the first of two agents has been merged."""
    compared(world)
    ran(world, *picking(world))


def picking(world: World) -> list[str]:
    """The words that merge the work of the first agent."""
    patch = state(world, str(whole(world)["workers"][0]))["patch"]["sha256"]
    return ["merge", _team(world), "--pick", "1", "--approve", str(patch)[:16]]


def of_whole(*words: str) -> Callable[[World], list[str]]:
    """*words* with the run of the whole after the first."""
    return lambda world: [words[0], _team(world), *words[1:]]


def whole(world: World) -> dict[str, Any]:
    """state.json of the run of several agents, as a whole."""
    return state(world, _team(world))


def _team(world: World) -> str:
    return next(box.name for box in support.boxes(world.repo) if state(world, box.name)["workers"])


def torn(world: World) -> None:
    """A world whose ledger ends in half a line, as a kill within a write leaves it."""
    fixed(world)
    with (world.repo / ".agents" / "INDEX.jsonl").open("ab") as ledger:
        ledger.write(b'{"seq":3,"time":"2026-')


def waiting(world: World) -> None:
    """Start a scout in the background that says nothing more."""
    ran(world, "scout", "wait", "--detach", *program(world, "slow.py"))
    support.eventually(lambda: state(world)["phase"] == "running")


def cut(world: World, label: str, *words: str) -> None:
    """Run *words* and kill it just before the first point called *label* that comes after everything it depends on."""
    log, template = world.path.parent / f"{world.path.name}.cut.log", world.path.parent / f"{world.path.name}.cut"
    world.keep(template)
    try:
        world.run(points.traced([*support.AGENT, *words], log))
        assert not world.quiet()
        at = [each for each in points.read(points.lines_of(log), world) if each.label == label]
        assert at, f"{words} never comes to {label!r}"
        world.restore(template)
        world.run(points.traced([*support.AGENT, *words], log, f"{at[-1].call}:signal=SIGKILL:when={at[-1].nth}"))
        assert not world.quiet()
    finally:
        shutil.rmtree(template)
        log.unlink(missing_ok=True)


# --- What must be true ------------------------------------------------------------------------------------------------


def goes_on(*otherwise: str, name: str = "") -> Callable[[World], Sequence[str] | None]:
    """A run that did not come to its end is resumed; where there is none, it is begun anew with *otherwise*."""

    def words(world: World) -> Sequence[str] | None:
        boxes = support.boxes(world.repo)
        if not boxes:
            return [*otherwise, *program(world, name)]
        ended = state(world)["status"] not in {"CRASHED", "STALLED", "STOPPED"}
        return None if ended else ["resume", newest(world).name]

    return words


def is_(*statuses: str) -> Callable[[World], list[str]]:
    """The newest run has one of the *statuses*."""

    def check(world: World) -> list[str]:
        now = state(world)["status"] if support.boxes(world.repo) else "none"
        return [] if now in statuses else [f"the run is {now} instead of {' or '.join(statuses)}."]

    return check


def whole_work(world: World) -> list[str]:
    """A fix ended in review, with all that its agent did."""
    found = is_("REVIEW")(world)
    with contextlib.suppress(OSError):
        patch = (newest(world) / "changes.patch").read_text()
        wanted = ("+++ b/whole.txt", "+++ b/shop/cart.py")
        found += [f"{each!r} is not in its patch." for each in wanted if each not in patch]
        found += ["its patch holds what is not its work."] if patch.count("diff --git") != len(wanted) else []
    return found


def merged_or_not(world: World) -> list[str]:
    """The branch holds the merge exactly where the state says so, and all of it."""
    now, trailer = state(world), "Agent-Run: " in world.git("log", "-1", "--format=%B")
    files = (world.repo / "whole.txt").exists(), "edited" in (world.repo / "shop" / "cart.py").read_text()
    if now["status"] == "MERGED":
        return [] if trailer and files == (True, True) else [f"it is MERGED, and the checkout says {trailer} {files}."]
    if now["status"] != "REVIEW":
        return [f"it is {now['status']} after a merge."]
    return [] if not trailer and files == (False, False) else [f"it is in REVIEW, and the checkout says {files}."]


def of_one_mind(world: World) -> list[str]:
    """The whole stands as its agents do: merged where one of them is, and then the others were refused."""
    now = whole(world)
    agents = sorted(state(world, name)["status"] for name in now["workers"])
    known = {
        "MERGED": [["MERGED", "REJECTED"]], "REJECTED": [["REJECTED"] * 2],
        # A rejection may have come to the first of them alone; an undone merge has rejected the others before.
        "REVIEW": [["REVIEW"] * 2, ["REJECTED", "REVIEW"]],
    }  # fmt: skip
    if agents not in known.get(now["status"], []):
        return [f"the whole is {now['status']}, and its agents are {agents}."]
    found = "Agent-Run: " in world.git("log", "-1", "--format=%B"), (world.repo / "whole.txt").exists()
    wanted = now["status"] == "MERGED"
    return [] if found == (wanted, wanted) else [f"the whole is {now['status']}, and the checkout says {found}."]


def wholly(status: str) -> Callable[[World], list[str]]:
    """The whole has this *status*, and its agents stand with it."""

    def check(world: World) -> list[str]:
        now = whole(world)["status"]
        return of_one_mind(world) if now == status else [f"the whole is {now} instead of {status}."]

    return check


def on_a_branch(world: World) -> list[str]:
    """The branch is there exactly where the state says so, and the checkout knows nothing of it."""
    there = "result" in world.git("branch", "--format=%(refname:short)").split()
    now = state(world)["status"]
    return [] if there == (now == "MERGED") else [f"it is {now}, and the branch is {'' if there else 'not '}there."]


def once_more(words: Callable[[World], Sequence[str]], *before: str) -> Callable[[World], Sequence[str] | None]:
    """The same command again, where the newest run still has one of the statuses *before*."""
    return lambda world: words(world) if state(world)["status"] in before else None


def unless_whole(status: str, words: Callable[[World], Sequence[str]]) -> Callable[[World], Sequence[str] | None]:
    """*words* again, unless the whole has the *status* already."""
    return lambda world: None if whole(world)["status"] == status else words(world)
