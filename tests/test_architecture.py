"""What must not rot: arrows, doors, silent imports, the light way, words that give a thing away."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted(path for package in ("agents", "essentials", "hollow") for path in (ROOT / package).rglob("*.py"))

# Third-party library to the only modules that may import it (design, section 3).
DOORS = {
    "git": {"agents.git"},
    "psutil": {"agents.procs"},
    "filelock": {"agents.locks"},
    "yaml": {"agents.yamlfile", "agents.metafile", "agents.verbs.running"},
    "typer": {"agents.parser", "hollow.cli", "hollow.desk.cli"},
    "rich": {"agents.screen"},
    "ollama": {"hollow.minds.ollama"},
    "httpx": {"hollow.minds.ollama", "hollow.minds.bounded"},
}

# No input or output, no clock, no randomness: what they decide can be decided again.
PURE = {
    "agents.errors", "agents.naming", "agents.model", "agents.policy", "agents.events", "agents.watchdog",
    "agents.commands", "agents.prompts", "agents.plan", "agents.views", "agents.timers", "agents.ledger",
    "agents.redact", "agents.units", "agents.config", "agents.environment", "agents.layout", "agents.accepts",
    "agents.yamlfile", "agents.budget", "agents.loops", "agents.risk", "agents.approval", "agents.plugin",
    "agents.seccomp", "agents.engines.claude", "agents.engines.codex", "agents.engines.codex_events",
    "agents.engines.foreign",
    "agents.engines.base", "agents.engines.stream_json", "agents.engines.hollow", "agents.engines.command",
    "agents.engines.scripted", "agents.cycles", "agents.pulse",
    "agents.sightings", "agents.watchview", "agents.lifecycle", "agents.settings", "agents.metafile", "agents.quick",
    "hollow.minds.ollama_wire", "hollow.minds.reflex_facts", "hollow.minds.reflex_goals", "hollow.minds.reflex_notes",
    "hollow.minds.reflex_judging",
    "hollow.mind", "hollow.words", "hollow.ranking", "hollow.symbols", "hollow.parsing",
}  # fmt: skip
EFFECTS = {
    "os",
    "subprocess",
    "socket",
    "time",
    "random",
    "secrets",
    "shutil",
    "tempfile",
    "signal",
    "select",
    "sqlite3",
}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, *, types_too: bool) -> set[str]:
    """Names that *path* imports; those for type checkers alone only with *types_too*."""
    tree, found = ast.parse(path.read_text("utf-8")), set()
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only and not types_too:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


GRAPH = {module_of(path): imports(path, types_too=False) for path in FILES}


@pytest.mark.parametrize("library", sorted(DOORS))
def test_a_third_party_library_has_one_door(library):
    users = {name for name, used in GRAPH.items() if any(each.split(".")[0] == library for each in used)}
    assert users <= DOORS[library]


ALLOWED = {"agents": {"agents", "essentials"}, "hollow": {"hollow", "essentials"}, "essentials": {"essentials"}}


def test_the_supervisor_never_imports_the_agent_nor_the_agent_the_supervisor():
    for name, used in GRAPH.items():
        ours = {each.split(".")[0] for each in used} & set(ALLOWED)
        assert ours <= ALLOWED[name.split(".")[0]], name


PURE |= {name for name in GRAPH if name.startswith("hollow.substrate.")}

# What an agent lives in is made of layers (design, section 10): each may use those before it, never those after.
LAYERS = ("hollow.substrate", "hollow.memory", "hollow.hands", "hollow.living")


def test_the_layers_of_the_environment_point_one_way():
    for name, used in GRAPH.items():
        for at, layer in enumerate(LAYERS):
            later = LAYERS[at + 1 :]
            assert not (name.startswith(layer) and [each for each in used if each.startswith(later)]), name
    desk = {each for name, used in GRAPH.items() if name.startswith("hollow.desk") for each in used}
    assert not [each for each in desk if each.startswith(("hollow.living", "hollow.hands"))]


def test_nothing_imports_in_a_circle():
    """Arrows inside functions count too: a cycle is a cycle whenever it closes."""
    arrows = {name: {each for each in used if each in GRAPH and each != name} for name, used in GRAPH.items()}

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        todo = list(arrows[start])
        while todo:
            each = todo.pop()
            if each not in seen:
                seen.add(each)
                todo += arrows[each]
        return seen

    assert [name for name in arrows if name in reach(name)] == []


@pytest.mark.parametrize("name", sorted(PURE))
def test_a_pure_module_has_no_door_to_the_world(name):
    assert name in GRAPH
    assert {each.split(".")[0] for each in GRAPH[name]} & EFFECTS == set()


def test_importing_is_silent_and_touches_no_file(tmp_path):
    names = ", ".join(sorted(name for name in GRAPH if not name.endswith("__main__")))
    here = tmp_path / "here"
    here.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {names}"],
        cwd=here, env={"HOME": str(here), "PATH": "/usr/bin:/bin"}, capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(here.iterdir()) == []


HEAVY = {"typer", "click", "rich", "yaml", "git", "psutil", "filelock", "ollama", "httpx", "pydantic", "asyncio",
         "dataclasses", "inspect", "pathlib", "subprocess", "typing", "site"}  # fmt: skip


@pytest.mark.parametrize("verb", ["status", "list", "--version", "--help"])
def test_the_lean_way_loads_next_to_nothing(verb, tmp_path):
    """Start-up is felt at every command: what these load is counted, not timed."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from agents import lean; code = lean.main([{verb!r}]); "
        "sys.stderr.write(f'{code} ' + ' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-IS", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    code, *loaded = done.stderr.split()
    assert code == "0"
    assert HEAVY & set(loaded) == set()
    assert len(loaded) <= 65


def test_the_lean_way_and_the_whole_one_agree_on_the_tail_and_on_the_lock():
    from agents import git, glance, journal

    assert (glance.TAIL, glance.ROWS) == (journal.TAIL, journal.ROWS)
    assert f"{git.COMMONS_REF}.lock" == glance.COMMONS_LOCK


def test_no_unfinished_marks_and_no_swallowed_exceptions():
    for path in FILES:
        text = path.read_text("utf-8")
        assert not re.search(r"\b(TODO|FIXME|XXX)\b|NotImplementedError", text), path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ExceptHandler):
                broad = node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"}
                assert not (broad and all(isinstance(each, ast.Pass | ast.Continue) for each in node.body)), path


def test_every_module_and_public_function_says_what_it_is_for():
    for path in FILES:
        tree = ast.parse(path.read_text("utf-8"))
        assert ast.get_docstring(tree), path
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        for node in [*tree.body, *(inner for each in classes for inner in each.body)]:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{path}:{node.lineno} {node.name}"


def test_nothing_names_the_place_where_it_was_made():
    """A clone stands alone: no path of one machine, no registry's host."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    forbidden = re.compile(r"/work/|/root/|pypi\.org|registry\.npmjs|deb\.debian\.org|files\.pythonhosted")
    for name in names:
        path = ROOT / name
        if path != Path(__file__) and path.is_file():
            assert not forbidden.search(path.read_text("utf-8", "replace")), name
