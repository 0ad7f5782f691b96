"""Landlock: which rules spare what is hidden, and what the helper does to itself before it becomes the program."""

from __future__ import annotations

import os
import resource
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from agents import landlock, sandbox

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    for file in ("a/one", "a/b/two", "a/b/.env", "c/three", ".env"):
        (top / file).parent.mkdir(parents=True, exist_ok=True)
        (top / file).write_text(file)
    (top / "link").symlink_to(top / "a" / "b" / ".env")
    return top


@pytest.mark.parametrize(
    ("hidden", "expected"),
    [
        ((), {"": "read"}),
        (("../elsewhere",), {"": "read"}),
        ((".env",), {"": "list", "a": "read", "c": "read"}),
        (("a/b",), {"": "list", "a": "list", "a/one": "read", "c": "read", ".env": "read"}),
        (
            ("a/b/.env", ".env"),
            {"": "list", "a": "list", "a/one": "read", "a/b": "list", "a/b/two": "read", "c": "read"},
        ),
        (("",), {}),
    ],
)
def test_the_siblings_of_what_is_hidden_are_allowed(
    hidden: tuple[str, ...], expected: dict[str, str], tree: Path
) -> None:
    """S04: no rule covers a hidden thing, and none stands for a link, which would be one for what it leads to."""
    made = {
        path.relative_to(tree).as_posix(): kind
        for kind, path in landlock.spread(
            tree, [tree / name if name[:2] != ".." else tree.parent / name[3:] for name in hidden]
        )
    }
    assert {("" if name == "." else name): kind for name, kind in made.items()} == expected


def confined(orders: dict[str, Any], argv: Sequence[str], **more: Any) -> subprocess.CompletedProcess[str]:
    if landlock.abi() < landlock.SCOPE_SINCE:
        pytest.skip(f"Landlock here is version {landlock.abi()}")
    given = sandbox.in_memory(landlock.packed(orders))
    try:
        command = [*landlock.command(given), *argv]
        return subprocess.run(command, pass_fds=[given], capture_output=True, text=True, check=False, **more)
    finally:
        os.close(given)


SYSTEM = ["/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/nix/store"]


def sh(script: str, tree: Path, **orders: Any) -> subprocess.CompletedProcess[str]:
    given = {"files": True, "read": SYSTEM, "write": ["/dev/null"], **orders}
    return confined(given, ["/bin/sh", "-c", script], cwd=tree)


@pytest.mark.parametrize(
    ("script", "orders", "works"),
    [
        ("cat a/one", {"read": ["a"]}, True),
        ("cat a/one", {"read": ["c"]}, False),
        ("cat a/one", {"list": ["a"]}, False),
        ("ls a", {"list": ["a"]}, True),
        ("ls a", {"read": ["a/one"]}, False),
        ("echo x > a/one", {"read": ["a"]}, False),
        ("echo x > a/one && mkdir a/new && mv a/one a/new/ && rm a/new/one && ln -s x a/y", {"write": ["a"]}, True),
        ("mv a/one c/one", {"write": ["a", "c"]}, True),
        ("mv a/one c/one", {"write": ["a"], "read": ["c"]}, False),
        ("cat c/three", {"read": ["c/three"]}, True),
        ("echo x > c/three", {"write": ["c/three"]}, True),
        ("cat link", {"read": ["link"]}, True),
        ("cat nothing/there", {"read": ["nothing"]}, False),
    ],
)
def test_files_are_open_as_far_as_the_orders_go(
    script: str, orders: dict[str, list[str]], works: bool, tree: Path
) -> None:
    """T147: reading, listing and writing are three things; a path that is not there needs no rule."""
    given = {kind: [str(tree / name) for name in names] for kind, names in orders.items()}
    done = sh(
        script,
        tree,
        read=[*SYSTEM, *given.get("read", [])],
        list=given.get("list", []),
        write=["/dev/null", *given.get("write", [])],
    )
    assert (done.returncode == 0) == works, done.stderr


def test_what_it_becomes_has_no_rights_over_the_machine(tree: Path) -> None:
    """Root under Landlock is root without capabilities, for good."""
    done = sh("cat /proc/self/status", tree, read=[*SYSTEM, "/proc"])
    facts = dict(line.split(":\t", 1) for line in done.stdout.splitlines() if ":\t" in line)
    assert {facts[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {"0" * 16}
    assert facts["NoNewPrivs"] == "1"


def test_more_processes_than_now_are_counted_from_now(tree: Path) -> None:
    """P06, fact 18: outside of a user namespace the limit counts all of the user's processes."""
    done = sh("ulimit -p 2> /dev/null || ulimit -u", tree, processes=50, read=[*SYSTEM, "/proc"])
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    assert 50 <= int(done.stdout) <= (hard if hard != resource.RLIM_INFINITY else 10**7)


def test_the_scope_alone_leaves_files_as_they_are(tree: Path) -> None:
    """S11: around bubblewrap only abstract sockets are shut; its mounts and the files are its own business."""
    done = confined({"scope": landlock.SCOPE_ABSTRACT}, ["/bin/sh", "-c", "cat a/one; echo x > a/new"], cwd=tree)
    assert done.stdout == "a/one"
    assert (tree / "a" / "new").exists()


@pytest.mark.parametrize("argv", [["/no/such/program"], ["/etc/passwd"]])
def test_a_program_that_cannot_be_run_is_said(argv: list[str], tree: Path) -> None:
    """P26: with its name and the reason."""
    done = confined({}, argv, cwd=tree)
    assert done.returncode == 1
    assert argv[0] in done.stderr


def test_a_filter_that_the_kernel_refuses_is_no_filter(tree: Path) -> None:
    """What cannot be put on ends the start; it never runs without it."""
    done = confined({"filter": bytes(8)}, ["/bin/echo", "ran"], cwd=tree)
    assert done.returncode == 1
    assert "ran" not in done.stdout
    assert "seccomp" in done.stderr
