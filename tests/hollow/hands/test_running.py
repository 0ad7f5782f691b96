from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from hollow.sandbox import narrowed, offered
from hollow.substrate.model import Trouble
from tests.support.hands import do, no_cell, scene
from tests.support.needs import needs_bwrap

TOOL = """def scribble(path="f", mode="w"):
    try:
        with open(path, mode) as file:
            file.write("x")
        return "wrote"
    except OSError as why:
        return "refused: " + why.strerror
"""


@pytest.fixture
def stage(tmp_path):
    return scene(tmp_path)


def alive(mark: str) -> bool:
    """Whether a process with *mark* in its command line is left."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if mark.encode() in (folder / "cmdline").read_bytes():
                    return True
            except OSError:
                continue
    return False


WRITES = [
    "echo x > f",
    "echo x > workspace/cedar/f",
    "echo x >> workspace/cedar/note.md",
    "echo x > design/f",
    "sed -i s/CORE/ERROR/ agents/core.py",
    "rm -f workspace/cedar/note.md design/plan.md",
    "mv workspace/cedar workspace/cedar2",
    "ln -s /etc workspace/cedar/l",
    "chmod 777 workspace/cedar/note.md",
]


@needs_bwrap
def test_a_locked_agent_changes_nothing_through_a_shell_or_python(stage):
    """T57: at .80 no byte of the airlock changes, whatever the command; it runs all the same."""
    before, hands = stage.files(), stage.hands(0.80)
    result = do(hands, "shell_exec", command="; ".join(f"({each}) 2>&1" for each in WRITES) + "; echo ran")
    assert result.ok
    assert result.output["output"].endswith("ran")
    assert result.output["output"].count("Read-only file system") >= len(WRITES) - 2
    assert result.wrote == ()
    code = "for m in 'wax':\n    try: open('workspace/cedar/f', m)\n    except OSError as e: print(e.strerror)"
    assert do(hands, "test_exec", code=code).output["output"] == "\n".join(["Read-only file system"] * 3)
    assert stage.files() == before


@needs_bwrap
@pytest.mark.parametrize("load", [0.80, None])
def test_a_locked_agents_tool_changes_nothing(stage, load):
    """T57, T60: a synthesized tool that opens a file for writing or appending gets no further than a shell."""
    made = do(stage.hands(0.0), "synthesize_capability", name="scribble", description="leaves a mark", code=TOOL)
    assert made.ok, made
    before, hands = stage.files(), stage.hands(load)
    for path, mode in (("workspace/cedar/f", "w"), ("workspace/cedar/note.md", "a"), ("design/f", "x"), ("f", "w")):
        assert do(hands, "scribble", path=path, mode=mode).output == "refused: Read-only file system"
    assert stage.files() == before
    freely = do(stage.hands(0.74), "scribble", path="workspace/cedar/f")
    assert (freely.output, freely.wrote) == ("wrote", ("workspace/cedar/f",))


@needs_bwrap
def test_an_open_agents_child_writes_its_own_folders_alone(stage):
    command = (
        "echo a > workspace/cedar/new.md; echo b >> design/plan.md; touch README.md agents/core.py"
        " workspace/vault/made.py .git/x f; mkdir -p workspace/cedar/sub; echo c > workspace/cedar/sub/c; true"
    )
    result = do(stage.hands(0.7499), "shell_exec", command=command)
    assert result.output["exit_code"] == 0
    assert result.output["output"].count("Read-only file system") == 5
    assert result.wrote == ("design/plan.md", "workspace/cedar/new.md", "workspace/cedar/sub/c")


@needs_bwrap
def test_a_child_sees_no_memory_and_reaches_no_network(stage):
    """T24: what answers requests is not even there for a command."""
    (stage.memory.root / "claude_responses.jsonl").write_text("")
    target = stage.memory.root / "claude_responses.jsonl"
    command = f"echo forged >> {target}; cat {target}; ls -A {stage.memory.root.parent}; cat /proc/net/route | wc -l"
    result = do(stage.hands(), "shell_exec", command=command)
    assert "forged" not in target.read_text()
    assert result.output["output"].splitlines()[-1] == "1"


@needs_bwrap
@pytest.mark.parametrize("name", ["shell_exec", "test_exec"])
def test_a_child_that_sleeps_is_ended_at_its_time(stage, name):
    """T158: 30 seconds of sleep at a bound of half a second return in less than 1.5, and the child is gone."""
    mark = f"30.{os.getpid()}{time.monotonic_ns()}"
    given = {"command": f"echo so; sleep {mark}"} if name == "shell_exec" else {
        "code": f"import subprocess\nprint('so', flush=True)\nsubprocess.run(['sleep', '{mark}'])"
    }  # fmt: skip
    stage.cell(True)
    taken = []
    for _ in range(3):
        result = do(stage.hands(step_seconds=0.5), name, **given)
        assert (result.ok, result.trouble) == (False, Trouble.TIMEOUT)
        assert result.output["output"].startswith(("so", "(no output)"))
        assert not alive(mark)
        taken.append(result.seconds)
        if taken[-1] < 1.5:
            break
    # Once is enough: what a crowded machine takes to start and end a sandbox is not the bound's.
    assert 0.5 <= min(taken) < 1.5


@needs_bwrap
def test_a_program_gives_its_exit_code_and_output(stage):
    hands = stage.hands()
    code = "import sys, src.app\nprint(src.app.light(), len(sys.argv))\nsys.exit(3)"
    assert do(hands, "test_exec", code=code).output == {"exit_code": 3, "output": "1 1"}
    broken = do(hands, "test_exec", code="print(")
    assert broken.output["exit_code"] == 1
    assert "SyntaxError" in broken.output["output"]
    long = "x = 1\n" * 30_000 + "print(x)"
    assert do(hands, "test_exec", code=long).output == {"exit_code": 0, "output": "1"}


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("shell_exec", {"command": "  "}),
        ("shell_exec", {"command": "a\0b"}),
        ("shell_exec", {"command": "x" * 200_000}),
        ("test_exec", {"code": ""}),
        ("test_exec", {"code": "x" * 300_000}),
    ],
)
def test_what_cannot_be_run_is_refused_before_a_child_starts(stage, name, params):
    assert do(stage.hands(cell=no_cell), name, **params).trouble is Trouble.USAGE


@pytest.mark.parametrize("name", ["shell_exec", "test_exec"])
def test_without_a_sandbox_nothing_is_run(stage, name):
    """T60: where there is no safe way there is none, whatever the load."""
    hands = stage.hands(cell=no_cell)
    result = do(hands, name, **{"command" if name == "shell_exec" else "code": "print(1)"})
    assert (result.ok, result.trouble, result.output) == (False, Trouble.HOST, None)


# --- The narrowed sandbox ---------------------------------------------------------------------------------------------


@needs_bwrap
def test_only_true_folders_of_the_repository_are_opened(stage, tmp_path):
    """W6: a folder that is missing, a link, or outside opens nothing."""
    (stage.repo / "workspace/cipher").symlink_to("../agents")
    whole = offered(stage.repo, tmp_path / ".agents/hollow/index", "none", os.environ)
    asked = [
        stage.repo / name for name in ("workspace/cedar", "workspace/cipher", "missing", "design/plan.md", ".", "..")
    ]
    narrow = narrowed(whole, asked)
    assert narrow.writable == (stage.repo / "workspace/cedar",)
    assert whole.writable is None


@needs_bwrap
@pytest.mark.parametrize("surroundings", ["none", "full"])
def test_a_narrowed_sandbox_is_read_only_but_for_its_folders(stage, tmp_path, surroundings):
    """T57: within whatever surrounds the agent, and though the way to the repository is spelled with a link."""
    (tmp_path / "way").symlink_to(stage.repo)
    whole = offered(tmp_path / "way", tmp_path / ".agents/hollow/index", surroundings, os.environ)
    narrow = narrowed(whole, [tmp_path / "way/design"])
    assert narrow.writable == (stage.repo / "design",)
    done = subprocess.run(
        narrow.argv("echo a > design/a; echo b > b; echo c > workspace/cedar/c; echo d > .git/d"),
        cwd=narrow.repo, env=dict(narrow.env), capture_output=True, text=True,
    )  # fmt: skip
    assert done.stderr.count("Read-only file system") == 3
    assert (stage.repo / "design/a").read_text() == "a\n"


def test_surroundings_alone_cannot_be_narrowed(stage, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sh").symlink_to("/bin/sh")
    whole = offered(stage.repo, tmp_path / "index", "full", {"PATH": str(tmp_path / "bin")})
    assert whole is not None
    assert whole.bwrap is None
    assert narrowed(whole, ()) is None
