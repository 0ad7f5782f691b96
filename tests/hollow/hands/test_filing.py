from __future__ import annotations

import pytest

from hollow.substrate.model import Kind, Trouble
from tests.support.hands import do, scene


@pytest.fixture
def stage(tmp_path):
    made = scene(tmp_path)
    (made.repo / "workspace/cedar/door").symlink_to("../../agents")
    (made.repo / "workspace/cedar/file").symlink_to("../../agents/core.py")
    (made.repo / "workspace/cedar/out").symlink_to(tmp_path)
    return made


REFUSED = [
    "agents/core.py",
    "agents/new.py",
    "/agentOS/agents/core.py",
    "workspace/../agents/core.py",
    "workspace/cedar/../../agents/core.py",
    "/agentOS/../agents/core.py",
    "workspace/cedar/door/core.py",
    "workspace/cedar/file",
    "workspace/cedar/out/x.md",
    "workspace/vault/made.py",
    "/etc/hollow-test",
    "../outside.md",
    "workspace/cedar",
    "workspace/cedarx/a.md",
    "design",
    "design/../README.md",
    "DESIGN/x.md",
    "workspace/cedar/.git/config",
    "workspace/cedar/.env",
    "workspace/cedar/id_rsa",
    ".agents/hollow/claude_responses.jsonl",
    "memory/claude_responses.jsonl",
    "/agentOS/memory/claude_responses.jsonl",
    "workspace/cedar/a\0b",
    "",
]


@pytest.mark.parametrize("path", REFUSED)
def test_nothing_outside_of_the_own_folders_is_written(stage, path):
    """T23: whatever leads elsewhere is refused, and no byte changes."""
    before, hands = stage.files(), stage.hands()
    for result in (
        do(hands, "fs_write", path=path, content="evil\n"),
        do(hands, "fs_edit", path=path, old="1", new="2"),
    ):
        assert (result.ok, result.trouble, result.wrote) == (False, Trouble.USAGE, ())
        assert result.error
    assert stage.files() == before
    assert not (stage.repo.parent / "x.md").exists()


@pytest.mark.parametrize(
    "answers", ["claude_responses.jsonl", "claude_requests.jsonl", "identity/cedar/suffering.json"]
)
@pytest.mark.parametrize("top", ["/agentOS/memory/", "../.agents/hollow/", ".agents/hollow/"])
def test_the_memory_is_no_place_for_files(stage, top, answers):
    """T24: an answer of the operator cannot be forged by writing it."""
    target = stage.memory.root / answers
    assert not do(stage.hands(), "fs_write", path=f"{top}{answers}", content="{}\n").ok
    absolute = do(stage.hands(), "fs_write", path=str(target), content="{}\n")
    assert absolute.trouble is Trouble.USAGE
    assert not target.exists()


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("workspace/cedar/new/deep.md", "workspace/cedar/new/deep.md"),
        ("/agentOS/workspace/cedar/a.md", "workspace/cedar/a.md"),
        ("/agentOS/design/lamp.md", "design/lamp.md"),
        ("./design/x/../lamp.md", "design/lamp.md"),
    ],
)
def test_the_own_folders_are_written(stage, path, real):
    result = do(stage.hands(), "fs_write", path=path, content="first\n")
    assert (result.ok, result.wrote) == (True, (real,))
    assert result.output["path"] == real
    assert (stage.repo / real).read_text() == "first\n"
    again = do(stage.hands(), "fs_edit", path=real, old="first", new="second")
    assert again.wrote == (real,)
    assert (stage.repo / real).read_text() == "second\n"


def test_a_refused_write_makes_no_folder(stage):
    assert not do(stage.hands(), "fs_write", path="made/up/x.md", content="x").ok
    assert not (stage.repo / "made").exists()


def test_an_edit_that_fits_nowhere_says_so_in_the_agents_words(stage):
    result = do(stage.hands(), "fs_edit", path="workspace/cedar/note.md", old="four", new="five")
    assert not result.ok
    assert result.error.startswith("old was not found")
    missing = do(stage.hands(), "fs_edit", path="workspace/cedar/none.md", old="a", new="b")
    assert "fs_write" in missing.error
    assert "WriteFile" not in missing.error


def test_everything_in_the_airlock_is_read(stage):
    hands = stage.hands()
    assert do(hands, "fs_read", path="/agentOS/src/app.py").output.startswith("     1  def light():")
    assert "app.py (" in do(hands, "fs_read", path="src").output
    assert do(hands, "fs_read", path="src/app.py").happenings[0].kind is Kind.STEP
    cut = do(hands, "fs_read", path="workspace/cedar/note.md", limit="1").output
    assert cut.endswith("for more call fs_read with offset=2.]")


@pytest.mark.parametrize("path", [".git/config", "../.agents/hollow/x", "/etc/passwd", "nowhere.md"])
def test_what_is_closed_is_not_read(stage, path):
    result = do(stage.hands(), "fs_read", path=path)
    assert (result.ok, result.trouble) == (False, Trouble.USAGE)


def test_reading_a_peers_file_is_seen_by_both(stage):
    result = do(stage.hands(), "fs_read", path="workspace/vault/made.py")
    peer, reference = result.happenings[:2]
    assert (peer.kind, dict(peer.facts)) == (Kind.PEER, {"peer": "vault", "how": "read"})
    assert (reference.kind, dict(reference.facts)) == (
        Kind.REFERENCE,
        {"what": "workspace/vault/made.py", "by": "cedar", "of": "vault"},
    )


def test_a_file_that_talks_like_the_tools_is_shown_as_it_is(stage):
    (stage.repo / "workspace/cedar/talk.md").write_text("use ReadFile and Grep\n")
    assert "use ReadFile and Grep" in do(stage.hands(), "fs_read", path="workspace/cedar/talk.md").output
