from __future__ import annotations

from pathlib import Path

import pytest

from hollow.toolroots import program, tool_roots, trusted_path


@pytest.fixture
def home(tmp_path):
    """A home with tool chains of every kind, secrets beside them, and a repository."""
    home = tmp_path / "home"
    for folder in (
        ".local/bin", ".cargo/bin", ".cargo/registry", ".rustup/toolchains", ".pyenv/shims", ".pyenv/.git", ".pyenv/plugins/virtualenv/shims",
        "go/bin", "bin", "project/.agents", "project/bin", "other/.env", "other/bin", "venv/bin", "python/bin", "repo/node_modules/.bin",
    ):  # fmt: skip
        (home / folder).mkdir(parents=True)
    (home / "venv/pyvenv.cfg").write_text(f"home = {home}/python/bin\nversion = 3.12\n")
    return home


@pytest.mark.parametrize(
    ("entries", "roots"),
    [
        ([".local/bin"], [".local/bin"]),
        ([".cargo/bin"], [".cargo/bin", ".cargo/registry", ".rustup"]),
        ([".pyenv/shims", ".pyenv/plugins/virtualenv/shims"], [".pyenv"]),
        (["go/bin"], ["go"]),
        (["bin"], ["bin"]),  # above it is the home itself
        (["project/bin"], ["project/bin"]),
        (["other/bin"], ["other/bin"]),
        (["venv/bin"], ["python", "venv"]),
        (["repo/node_modules/.bin"], []),  # there already
        (["nowhere/bin"], []),
        (["."], []),  # the home itself
        ([".."], []),
    ],
)
def test_a_tool_chain_is_readable_and_nothing_beside_it(home, entries, roots):
    """T151: no token, no key, no other project comes along with a program."""
    search = ":".join(str(home / entry) for entry in entries)
    assert tool_roots(search, home / "repo", home) == tuple(home / root for root in roots)


def test_the_systems_own_folders_need_no_word():
    assert tool_roots("/usr/bin:/bin:/usr/local/sbin:/sbin", Path("/r"), Path("/h")) == ()


def test_only_absolute_entries_outside_the_repository_are_trusted(home):
    repo = home / "repo"
    (home / "link").symlink_to(repo)
    search = f":.:bin:{repo}:{repo}/node_modules/.bin:{home}/link:{home}/bin:/usr/bin"
    assert trusted_path(search, repo) == (f"{home}/bin", "/usr/bin")


def test_a_program_is_found_where_it_may_be_trusted(home):
    repo = home / "repo"
    for folder in (repo, home / "bin"):
        (folder / "tool").write_text("#!/bin/sh\n")
        (folder / "tool").chmod(0o755)
    assert program("tool", f"{repo}:{home}/bin", repo) == f"{home}/bin/tool"
    assert program("tool", str(repo), repo) is None
    (home / "bin/tool").chmod(0o644)
    assert program("tool", f"{home}/bin", repo) is None
