"""Which paths a program needs, and which stay the operator's own: on trees of files that look like real installations."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agents import roots
from agents.cell import Cell
from tests.support import cells
from tests.support.needs import needs_bwrap
from tests.support.wards import hear, output

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of the sealed world."""
    return tmp_path / "home"


@pytest.fixture
def root(home: Path) -> Path:
    path = home / "dev" / "repo"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def put(home: Path) -> Callable[..., Path]:
    """Writes a file below the home; executable with *text*, or a link to *to*."""

    def write(name: str, text: str = "", *, to: str | None = None) -> Path:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if to is not None:
            path.symlink_to(to)
        else:
            path.write_text(text)
            path.chmod(0o755)
        return path

    return write


def names(found: tuple[Path, ...], home: Path) -> set[str]:
    """*found* relative to the home; what lies elsewhere in full."""
    return {path.relative_to(home).as_posix() if path.is_relative_to(home) else str(path) for path in found}


class TestPrograms:
    """``argv[0]`` and what it stands on."""

    @pytest.fixture
    def needed(self, home: Path, root: Path) -> Callable[..., set[str]]:
        def look(*argv: str, path: str = "") -> set[str]:
            # "./" keeps an entry relative.
            search = os.pathsep.join(
                each if each.startswith("./") else str(home / each) for each in path.split(":") if each
            )
            return names(roots.program_roots(argv, {"HOME": str(home), "PATH": f"{search}:/usr/bin:/bin"}, root), home)

        return look

    def test_one_of_the_system_is_there_already(self, needed) -> None:
        assert all(each.startswith(("/usr/", "/bin/")) for each in needed("sh"))

    def test_a_lone_file_in_the_home(self, put, needed) -> None:
        """`~/bin` may hold anything beside it."""
        put("bin/tool", "#!/bin/sh\n")
        found = needed("tool", path="bin")
        assert "bin/tool" in found
        assert not found & {"bin", "."}

    def test_a_script_of_a_virtual_environment(self, put, needed) -> None:
        """Its interpreter, the environment, and the Python that this stands on."""
        put(".pyenv/versions/3.11/bin/python3.11")
        put(".pyenv/versions/3.11/lib/python3.11/os.py")
        put(
            "venv/pyvenv.cfg",
            f"home = {put('.pyenv/versions/3.11/bin/python3', to='python3.11').parent}\nversion = 3.11\n",
        )
        put("venv/bin/python", to="../../.pyenv/versions/3.11/bin/python3.11")
        put("venv/lib/x")
        put("venv/bin/ruff", f"#!{put('venv/bin/python3', to='python').parent / 'python3'}\n")
        assert needed("ruff", path="venv/bin") >= {"venv", "venv/bin/ruff", ".pyenv/versions/3.11"}

    def test_a_forged_environment_opens_nothing(self, put, needed, home: Path) -> None:
        """S03: a stranger's pyvenv.cfg names a folder of secrets as its Python."""
        put(".ssh/bin/id_rsa")
        put(".ssh/python3")
        put("dev/repo/.venv/bin/python")
        put("dev/repo/.venv/lib/x")
        for claimed in (".ssh/bin", ".ssh", ".", "dev"):
            put("dev/repo/.venv/pyvenv.cfg", f"home = {home / claimed}\n")
            assert needed(".venv/bin/python") == {"dev/repo/.venv", "dev/repo/.venv/bin/python"}

    def test_a_node_package(self, put, needed) -> None:
        """The whole tree of packages, and node by the first line."""
        put(".nvm/v20/lib/node_modules/@x/cli/cli.js", "#!/usr/bin/env -S node --flag\n")
        put(".nvm/v20/lib/node_modules/@x/cli/node_modules/y/z")
        put(".nvm/v20/bin/cli", to="../lib/node_modules/@x/cli/cli.js")
        put(".nvm/v20/bin/node")
        assert needed("cli", path=".nvm/v20/bin") >= {".nvm/v20", ".nvm/v20/lib/node_modules", ".nvm/v20/bin/node"}

    def test_a_package_inside_of_a_private_folder_is_the_package_alone(self, put, needed) -> None:
        put(".claude/local/node_modules/cc/cli.js", "#!/bin/sh\n")
        put(".claude/local/node_modules/.bin/claude", to="../cc/cli.js")
        put(".claude/.credentials.json")
        found = needed("claude", path=".claude/local/node_modules/.bin")
        assert ".claude/local/node_modules" in found
        assert not found & {".claude", ".claude/local"}

    def test_a_shim_of_pyenv(self, put, needed) -> None:
        put(".pyenv/shims/black", "#!/usr/bin/env bash\n")
        put(".pyenv/libexec/pyenv")
        assert ".pyenv" in needed("black", path=".pyenv/shims")

    def test_a_program_of_cargo_and_one_of_pip(self, put, needed) -> None:
        put(".cargo/bin/cargo")
        put(".cargo/credentials.toml")
        put(".rustup/toolchains/x")
        put(".local/bin/tool", "#!/usr/bin/python3\n")
        put(".local/lib/python3/x")
        put(".local/share/keyrings/x")
        assert needed("cargo", path=".cargo/bin") == {".cargo/bin/cargo", ".rustup"}
        found = needed("tool", path=".local/bin")
        assert found >= {".local/bin/tool", ".local/lib"}
        assert not found & {".local", ".local/share"}

    def test_the_repository_does_not_say_what_the_program_is(self, put, needed) -> None:
        """P27: neither by a relative entry of PATH nor by one inside of it."""
        put("dev/repo/bin/tool")
        assert needed("tool", path="./:./bin:dev/repo/bin") == set()

    def test_first_lines_that_lead_in_a_circle_or_nowhere(self, put, needed, home: Path) -> None:
        put("x/a", f"#!{home}/x/b\n")
        put("x/b", f"#!{home}/x/a\n")
        put("x/c", "#!\n")
        put("x/d", "#!/no/such/interpreter\n")
        put("x/e", "#!/usr/bin/env X=1 -i\n")
        assert needed("a", path="x") == {"x/a", "x/b"}
        assert [needed(name, path="x") for name in "cd"] == [{"x/c"}, {"x/d"}]
        assert "x/e" in needed("e", path="x")
        assert needed("no-such-program") == set()
        assert roots.program_roots((), {}, home) == ()


@pytest.mark.parametrize(
    ("word", "readable"),
    [
        ("{home}/notes/todo.md", {"notes/todo.md"}),
        ("--file={home}/notes/todo.md", {"notes/todo.md"}),
        ("../other/file", {"dev/other/file"}),
        ("{home}/notes", {"notes"}),
        ("{home}", set()),
        ("{home}/dev", set()),
        ("..", set()),
        ("/", set()),
        ("/etc", set()),
        ("/tmp", set()),
        ("/proc/self", set()),
        ("/dev/null", set()),
        ("{home}/.ssh", set()),
        ("{home}/.config/gh", set()),
        ("{home}/.local/share", set()),
        ("{home}/to-ssh", set()),
        ("src/code.py", set()),
        ("{home}/dev/repo/src/code.py", {"dev/repo/src/code.py"}),
        ("--file={home}/dev/repo/src/code.py", {"dev/repo/src/code.py"}),
        ("{home}/dev/repo/src", set()),
        ("{home}/dev/repo/src/to-secret", set()),
        ("{home}/dev/repo/.env", set()),
        ("{home}/dev/repo/.git/config", set()),
        ("src/to-secret", set()),
        ("tidy the imports, please", set()),
        ("a\0b", set()),
        ("x" * 5000, set()),
        ("", set()),
        ("--flag", set()),
    ],
)
def test_a_word_opens_what_it_names_and_no_more(word: str, readable: set[str], put, home: Path, root: Path) -> None:
    """S03: the file alone, never what contains the home, the repository or keys, and never by a link of the repository's."""
    for name in (
        "notes/todo.md",
        "dev/other/file",
        ".ssh/id_rsa",
        ".config/gh/hosts.yml",
        ".local/share/keyrings/x",
        "dev/repo/src/code.py",
        "dev/repo/.env",
        "dev/repo/.git/config",
    ):
        put(name)
    put("dev/repo/src/to-secret", to=str(home / ".ssh" / "id_rsa"))
    put("to-ssh", to=".ssh")
    found = roots.program_roots(("no-such-program", word.format(home=home)), {"HOME": str(home), "PATH": ""}, root)
    assert names(found, home) == readable


@pytest.mark.parametrize(
    ("entry", "files", "expected"),
    [
        ("/usr/bin", (), {"/usr/bin"}),
        ("go/bin", ("go/bin/x", "go/lib/y"), {"go"}),
        ("tools", ("tools/x",), {"tools"}),
        ("bin", ("bin/x", "lib/y"), {"bin"}),
        (".local/bin", (".local/bin/x", ".local/lib/y"), {".local/bin"}),
        (".cargo/bin", (".cargo/bin/x", ".cargo/lib/x", ".rustup/y"), {".cargo/bin", ".rustup"}),
        (".pyenv/shims", (".pyenv/shims/x", ".pyenv/versions/y"), {".pyenv"}),
        ("dev/bin", ("dev/bin/x",), {"dev/bin"}),
        (".ssh/bin", (".ssh/bin/x",), set()),
        ("missing/bin", (), set()),
        ("", (), set()),
    ],
)
def test_tool_chains_are_seen_whole_where_they_are_plainly_that(
    entry: str, files: tuple[str, ...], expected: set[str], put, home: Path
) -> None:
    for name in files:
        put(name)
    path = entry if entry.startswith("/") or not entry else str(home / entry)
    assert names(roots.tool_roots({"HOME": str(home), "PATH": f"{path}:relative/bin"}), home) == expected


def test_the_operators_home_is_kept_whatever_the_agents_is(put, home: Path, root: Path, tmp_path: Path) -> None:
    """S03: an agent has a HOME of its own, and the keys do not lie there."""
    put(".ssh/id_rsa")
    put("bin/x")
    put("lib/y")
    environ = {"HOME": str(tmp_path / "box" / "home"), "PATH": f"{home}/bin"}
    assert names(roots.tool_roots(environ), home) == {"bin"}
    assert roots.program_roots(("x", str(home), str(home / ".ssh")), environ, root) == (home / "bin" / "x",)


class TestSecrets:
    def test_all_env_files_but_the_examples(self, root: Path) -> None:
        """S04: tracked, untracked and ignored ones, also those that are links or folders."""
        hidden = [".env", ".env.local", "api/.env", "api/.env.production", ".agents-not/.env"]
        shown = [
            ".env.test",
            ".env.example",
            ".env.sample",
            ".env.template",
            ".env.dist",
            "x.env",
            "env",
            ".environment",
        ]
        skipped = ["node_modules/x/.env", ".venv/.env", ".git/.env", ".agents/.env", "agent_box/trees/x/.env"]
        for name in (*hidden, *shown, *skipped):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("KEY=1")
        (root / "web").mkdir()
        (root / "web" / ".env").symlink_to("../.env")
        (root / "folder" / ".env").mkdir(parents=True)
        expected = {*hidden, "web/.env", "folder/.env"}
        assert {path.relative_to(root).as_posix() for path in roots.secrets_in(root)} == expected

    def test_links_are_not_followed_and_folders_that_vanish_are_no_matter(self, root: Path) -> None:
        (root / "loop").symlink_to(".")
        (root / "home").symlink_to("../..")
        assert roots.secrets_in(root) == ()
        assert roots.secrets_in(root / "not there") == ()

    def test_git_is_not_asked(self, root: Path) -> None:
        """G15: an airlock's `.git` is the agent's to forge, and git would run what it names."""
        (root / ".env").write_text("KEY=1")
        (root / ".git").write_text("gitdir: /nowhere\n")
        assert [path.name for path in roots.secrets_in(root)] == [".env"]
        assert "subprocess" not in vars(roots)


@needs_bwrap
def test_the_python_of_these_tests_runs_by_its_roots_alone(root: Path, tmp_path: Path) -> None:
    """The real thing: an interpreter of whatever kind this is, in a sandbox that shows the system and these roots."""
    argv = [
        sys.executable,
        "-c",
        "import sys, json, ssl; import pytest; print(json.dumps(len(sys.path)), 'END', flush=True)",
    ]
    outside = subprocess.run(argv, capture_output=True, text=True, env=cells.ENV, check=True)
    with cells.started(argv, Cell(level="full", cwd=root, read=(root,), network=False), tmp_path) as child:
        assert output(child, b"END\n").decode() == outside.stdout
        assert hear(child, "exit") == {"exit": 0}


@pytest.mark.parametrize(
    ("holds", "lent"),
    [("lib", "chain"), ("versions", "chain"), (".git lib", "chain/bin"), (".git versions", "chain"), ("", "chain/bin")],
)
def test_a_clone_is_a_tool_chain_only_if_it_manages_versions(tmp_path: Path, holds: str, lent: str) -> None:
    """S03: a project with `bin` and `lib` on PATH is somebody's work, and not lent as a whole."""
    for name in ("bin", *holds.split()):
        (tmp_path / "chain" / name).mkdir(parents=True)
    environ = {"PATH": str(tmp_path / "chain" / "bin"), "HOME": str(tmp_path / "home")}
    assert roots.tool_roots(environ, tmp_path / "repo") == (tmp_path / lent,)


def test_a_folder_of_the_repository_on_path_is_no_tool_chain(tmp_path: Path) -> None:
    for name in ("bin", "lib"):
        (tmp_path / "repo" / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "repo" / "bin")
    environ = {"PATH": f"{tmp_path}/repo/bin:{tmp_path}/link", "HOME": str(tmp_path / "home")}
    assert roots.tool_roots(environ, tmp_path / "repo") == ()
