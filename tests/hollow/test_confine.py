from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.confine import Confinement, Refusal, closed, looks_secret, shown


@pytest.fixture
def place(tmp_path):
    """A root with files inside, secrets, and something outside."""
    root = tmp_path / "repo"
    (root / "src" / "agent_box").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".agents").mkdir()
    for name in (
        "src/a.py",
        "src/agent_box/b.py",
        ".env",
        ".env.local",
        ".env.test",
        ".git/config",
        ".agents/x",
        "key.pem",
        "ca.pem",
    ):
        (root / name).write_text(name)
    (tmp_path / "outside.txt").write_text("secret")
    return Confinement(root, lambda path: path == "ca.pem")


def read(border: Confinement, path: str) -> bytes:
    with border.file(path) as descriptor:
        return os.read(descriptor, 100)


@pytest.mark.parametrize("path", ["src/a.py", "./src/a.py", "src/../src/a.py", " src/a.py ", "src//a.py"])
def test_a_file_inside_is_opened_however_it_is_spelled(place, path):
    assert read(place, path) == b"src/a.py"


def test_an_absolute_path_inside_is_meant_as_it_stands(place):
    assert read(place, str(place.root / "src" / "a.py")) == b"src/a.py"


def test_a_root_that_is_a_link_may_be_quoted_as_it_was_given(place, tmp_path):
    (tmp_path / "alias").symlink_to(place.root)
    border = Confinement(tmp_path / "alias", lambda _: False)
    assert read(border, str(tmp_path / "alias" / "src" / "a.py")) == b"src/a.py"
    assert read(border, str(place.root / "src" / "a.py")) == b"src/a.py"
    with pytest.raises(Refusal):
        read(border, str(tmp_path / "alias" / ".." / "outside.txt"))


@pytest.mark.parametrize(
    "path", ["../outside.txt", "/etc/passwd", "src/../../outside.txt", "/", "..", "~/x/../../../outside.txt"]
)
def test_no_path_leads_out(place, path):
    """T147: a read-only agent sees the repository and nothing else."""
    with pytest.raises(Refusal):
        read(place, path)


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".GIT/config",
        ".git",
        "src/.git/x",
        ".agents/x",
        ".Agents/x",
        "agent_box/trees/x",
        ".env",
        ".ENV",
        ".env.local",
        "src/.env.production",
    ],
)
def test_what_belongs_to_git_the_supervisor_or_the_operator_is_closed(place, path):
    """T151: never .env; .env.test may be read."""
    with pytest.raises(Refusal, match="closed to agents"):
        place.name(path)


def test_what_only_looks_like_it_is_open(place):
    """T151: .env.test is for agents."""
    assert read(place, ".env.test") == b".env.test"
    assert read(place, "src/agent_box/b.py") == b"src/agent_box/b.py"
    for parts in (("src", ".github", "x"), ("environment",), ()):
        assert not closed(parts)


def test_a_secret_looking_file_is_closed_unless_git_tracks_it(place):
    with pytest.raises(Refusal, match="looks like a secret"):
        read(place, "key.pem")
    assert read(place, "ca.pem") == b"ca.pem"


@pytest.mark.parametrize(
    "name", ["id_rsa", "ID_RSA", "id_ed25519", "server.key", "a.PEM", ".npmrc", "credentials.json", "prod.tfvars"]
)
def test_usual_names_of_secrets_are_known(name):
    assert looks_secret(name)


@pytest.mark.parametrize("name", ["keys.py", "secretary.md", "id.py", "monkey.txt", "test_credentials.py"])
def test_ordinary_names_are_not_taken_for_secrets(name):
    assert not looks_secret(name)


def test_links_inside_are_followed_and_links_out_are_not(place, tmp_path):
    """T147: no link leads out, neither a file's nor a folder's."""
    root = place.root
    (root / "in").symlink_to("src/a.py")
    (root / "out").symlink_to("../outside.txt")
    (root / "up").symlink_to("..")
    (root / "hidden").symlink_to(".env")
    (root / "loop").symlink_to("loop")
    (root / "gone").symlink_to("nowhere")
    assert read(place, "in") == b"src/a.py"
    for path in ("out", "up/outside.txt", "hidden", "loop", "gone"):
        with pytest.raises(Refusal):
            read(place, path)


def test_a_link_planted_after_the_check_is_not_followed(place):
    """T147: the folder on the way is swapped between judging and opening."""
    parts = place.resolve("src/a.py")
    (place.root / "src").rename(place.root / "moved")
    (place.root / "src").symlink_to("/etc")
    with pytest.raises(Refusal, match="is no folder"):
        place.walk(parts[:-1], "src/a.py")


def test_what_is_no_regular_file_is_never_opened(place):
    """T147: opening a FIFO would wait for a writer for ever."""
    os.mkfifo(place.root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(place.root, os.O_RDONLY)
        try:
            listener.bind(f"/proc/self/fd/{here}/sock")  # a socket's path may have 107 bytes only
        finally:
            os.close(here)
        for path, kind in (("pipe", "a FIFO"), ("sock", "a socket"), ("src", "a folder"), (".", "a folder")):
            with pytest.raises(Refusal, match=kind):
                read(place, path)


@pytest.mark.parametrize("path", ["a\0b", "src/a.py/x", "nowhere", "x" * 5000, "\udc80"])
def test_a_path_that_cannot_be_is_refused_with_a_sentence(place, path):
    with pytest.raises(Refusal) as refused:
        read(place, path)
    assert str(refused.value).endswith(".")


def test_descriptors_are_given_back(place):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ("src/a.py", "nowhere", "src", ".env", "key.pem"):
        if place.allows(path) and path != "src":
            read(place, path)
    with pytest.raises(Refusal), place.folder("src/a.py"):
        pass
    with place.folder("src"):
        pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_path_is_shown_without_undecodable_bytes():
    assert shown(("a", os.fsdecode(b"b\xff"))) == "a/b\ufffd"


PARTS = st.sampled_from(["..", ".", "src", "a.py", "", "/", "up", ".git", "~", "outside.txt", "etc", "in"])


@settings(max_examples=120)
@given(parts=st.lists(PARTS, max_size=7))
def test_whatever_is_resolved_lies_inside(tmp_path_factory, parts):
    """T147: no mixture of dots, links and folders leads out."""
    root = tmp_path_factory.getbasetemp() / "prop" / "repo"
    if not root.exists():
        (root / "src").mkdir(parents=True)
        (root / "src" / "a.py").write_text("x")
        (root / "src" / "up").symlink_to("../..")
        (root / "in").symlink_to("src")
        (root.parent / "outside.txt").write_text("secret")
    border = Confinement(root, lambda _: False)
    try:
        found = border.resolve("/".join(parts))
    except Refusal:
        return
    assert os.path.realpath(border.root.joinpath(*found)).startswith(str(border.root))
    assert not closed((*found, "x"))
