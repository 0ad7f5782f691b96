from __future__ import annotations

import pytest

from hollow.substrate.model import Trouble
from tests.support.hands import do, scene
from tests.support.repos import git


@pytest.fixture
def stage(tmp_path):
    return scene(tmp_path)


def queue(stage):
    return [entry.request for entry in stage.memory.requests.all()]


def test_the_32_requests_are_one(stage):
    """T15: the loop of seed 000 through the choke point; the repeated ones leave nothing new."""
    asked = {"description": "Implement /agentOS/agents/classifier.py", "spec": "score_complexity"}
    results = [do(stage.hands(), "invoke_claude", **asked) for _ in range(32)]
    ids = {result.output["request_id"] for result in results}
    assert len(ids) == 1
    assert len(queue(stage)) == 1
    assert [result.left for result in results] == [(f"request:{ids.copy().pop()}",)] + [()] * 31
    assert [kind for kind, _ in stage.said] == ["request.submitted"]
    assert do(stage.hands(), "check_claude_status").ok
    lost = do(stage.hands(), "check_claude_status", request_id="req-000000000000")
    assert (lost.ok, lost.trouble, lost.output["status"]) == (False, Trouble.USAGE, "not_found")
    assert lost.output["known_request_ids"] == sorted(ids)


@pytest.mark.parametrize("description", ["", "   "])
def test_a_request_without_a_description_is_not_taken(stage, description):
    result = do(stage.hands(), "invoke_claude", description=description, spec="x")
    assert (result.ok, result.trouble, result.left) == (False, Trouble.USAGE, ())
    assert queue(stage) == []


@pytest.mark.parametrize(
    ("path", "ok"),
    [
        ("/agentOS/design/plan.md", True),
        ("design/plan.md", True),
        ("design/none.md", False),
        ("README.md", False),
        ("design/../README.md", False),
        ("../.agents/hollow/x", False),
        ("design/link.md", False),
    ],
)
def test_a_design_document_is_one_in_design(stage, path, ok):
    """T9: it must be there, in truth, and what it says goes along."""
    (stage.repo / "design/link.md").symlink_to("../agents/core.py")
    result = do(stage.hands(), "invoke_claude", description="light it", design_path=path)
    assert result.ok is ok
    assert len(queue(stage)) == int(ok)
    if ok:
        assert "light the lamp" in stage.memory.requests.document(result.output["request_id"])


def patch_of(stage, result):
    """The diff in the document of the request, applied to a clean copy of the file."""
    text = stage.memory.requests.document(result.output["request_id"])
    return text[text.index("--- ") :]


@pytest.mark.parametrize(
    ("path", "old", "new", "after"),
    [
        ("/agentOS/agents/core.py", "CORE = 1", "CORE = 2\nMORE = 3", "CORE = 2\nMORE = 3\n"),
        ("agents/new.py", "", "NEW = 1\n", "NEW = 1\n"),
        ("agents/bare.py", "", "NEW = 1", "NEW = 1"),
    ],
)
def test_a_proposed_change_is_a_patch_that_applies(stage, path, old, new, after):
    result = do(stage.hands(), "propose_change", path=path, description="more core", old=old, new=new)
    assert result.ok, result
    assert result.left == (f"request:{result.output['request_id']}",)
    assert queue(stage)[0].request_type == "change"
    before = stage.files()
    (stage.repo.parent / "p.patch").write_text(patch_of(stage, result))
    git(stage.repo, "apply", str(stage.repo.parent / "p.patch"))
    name = path.removeprefix("/agentOS/")
    assert (stage.repo / name).read_text() == after
    assert {key for key, value in stage.files().items() if before.get(key) != value} == {name}


DIFF = "--- a/agents/core.py\n+++ b/agents/core.py\n@@ -1 +1 @@\n-CORE = 1\n+CORE = 2\n"


@pytest.mark.parametrize(
    ("path", "diff", "ok"),
    [
        ("agents/core.py", DIFF, True),
        ("/agentOS/agents/core.py", DIFF.rstrip("\n"), True),
        ("agents/core.py", DIFF.partition("@@")[1] + DIFF.partition("@@")[2], True),
        ("README.md", DIFF, False),
        ("agents/core.py", DIFF + DIFF.replace("core", "other"), False),
        ("agents/core.py", "change one to two", False),
        ("agents/core.py", DIFF + "+x\n" * 100_000, False),
        (".git/config", DIFF.replace("agents/core.py", ".git/config"), False),
        ("../x", DIFF.replace("agents/core.py", "../x"), False),
    ],
)
def test_a_given_diff_changes_the_one_file_it_is_for(stage, path, diff, ok):
    result = do(stage.hands(), "propose_change", path=path, description="two", diff=diff)
    assert result.ok is ok
    assert len(queue(stage)) == int(ok)
    if ok:
        assert patch_of(stage, result).rstrip("\n") == DIFF.rstrip("\n")


@pytest.mark.parametrize(("old", "new"), [("CORE = 9", "x"), ("CORE = 1", "CORE = 1"), ("", "x"), ("1", "2" * 300_000)])
def test_a_change_that_fits_nowhere_is_told_at_once(stage, old, new):
    before = stage.files()
    result = do(stage.hands(), "propose_change", path="agents/core.py", description="two", old=old, new=new)
    assert (result.ok, result.trouble) == (False, Trouble.USAGE)
    assert stage.files() == before
    assert queue(stage) == []


def test_the_same_proposal_is_made_once_and_another_is_another(stage):
    given = {"path": "agents/core.py", "description": "two", "old": "1"}
    first, again, other = (do(stage.hands(), "propose_change", **given, new=new) for new in ("2", "2", "3"))
    assert first.output["request_id"] == again.output["request_id"] != other.output["request_id"]
    assert again.left == ()
