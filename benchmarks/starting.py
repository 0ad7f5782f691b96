"""The case `start`: from Enter to the prompt, for what needs no run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks.bench import ROOT, Row

if TYPE_CHECKING:
    from benchmarks.bench import Bench, Case

FEW_RUNS: Final = 10
_MAIN: Final = ROOT / "agents" / "__main__.py"


def start(bench: Bench) -> Case:
    """Programs beside each other that do hardly anything, and the command line of the box."""
    here = bench.material.history(FEW_RUNS)
    python = partial(bench.cost, here, bench.python)
    direct = partial(python, "-IS", str(_MAIN))
    candidates = {
        "sh": bench.cost(here, "sh", "-c", ":"),
        "pass": python("-c", "pass"),
        "again": python("-c", "pass"),
        "isolated": python("-IS", "-c", "pass"),
        "typer": python("-c", "import typer"),
        "--help": bench.launch(here, "--help"),
        "--version": bench.launch(here, "--version"),
        "status": bench.launch(here, "status"),
        "status direct": direct("status"),
        "--help direct": direct("--help"),
        "list --all": bench.launch(here, "list", "--all"),
        "status --json": bench.launch(here, "status", "--json"),
    }
    return bench.case(candidates, _rows(), 15, 41)


def _rows() -> list[Row]:
    bare = "`python -c pass`"
    typer = "`python -c 'import typer'`"
    return [
        Row(name="start.noise", what=f"{bare} again: what equal things differ by", floor=bare,
            over="again", under="pass"),
        Row(name="start.sh", what="`sh -c :`", floor=bare, over="sh", under="pass"),
        Row(name="start.isolated", what="`python -IS -c pass`", floor=bare, over="isolated", under="pass"),
        Row(name="start.help", what="`agent --help`", floor=bare, over="--help", under="pass", target=1.4),
        Row(name="start.version", what="`agent --version`", floor=bare, over="--version", under="pass",
            target=1.4),
        Row(name="start.status", what=f"`agent status`, {FEW_RUNS} runs", floor=bare, over="status", under="pass",
            target=2.2),
        Row(name="start.status-typer", what=f"`agent status`, {FEW_RUNS} runs", floor=typer, over="status",
            under="typer", target=0.35),
        Row(name="start.launcher", what="`agent status` by the launcher",
            floor="`python -IS agents/__main__.py status`", over="status", under="status direct"),
        Row(name="start.launcher-help", what="`agent --help` by the launcher",
            floor="`python -IS agents/__main__.py --help`", over="--help", under="--help direct"),
        Row(name="start.verb", what="`agent list --all`: a verb of the full command line", floor=typer,
            over="list --all", under="typer", target=1.2),
        Row(name="start.status-full", what="`agent status --json`: the same", floor=typer, over="status --json",
            under="typer", target=1.2),
    ]  # fmt: skip
