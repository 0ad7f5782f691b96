"""What every verb works with: found without a trace, prepared without a surprise."""

from __future__ import annotations

import pytest

from agents.context import open_context, prepare
from agents.errors import OperatorError
from tests.support.boxes import porcelain
from tests.support.repos import make_repo


@pytest.fixture
def root(tmp_path):
    return make_repo(tmp_path / "somewhere", {"a": "a"})


def test_opening_writes_nothing_and_preparing_is_not_seen_by_git(root):
    """T121: T148: a question leaves no folder; what a run needs is out of git's sight."""
    context = open_context(root, environ={})
    assert not context.layout.data.exists()
    prepare(context)
    prepare(context)
    assert context.layout.data.is_dir()
    assert porcelain(root) == ""


def test_before_the_first_commit_there_is_no_head(tmp_path):
    context = open_context(make_repo(tmp_path / "new"), environ={})
    with pytest.raises(OperatorError, match="no commit") as caught:
        context.head()
    assert "git commit" in caught.value.hint


def test_settings_come_from_flag_environment_and_file_in_that_order(root):
    (root / "agent.yaml").write_text("stall_after: 1m\ngrace: 3s\ntimeout: 9m\n")
    context = open_context(root, flags={"stall_after": "3m"}, environ={"AGENT_BOX_GRACE": "7s"})
    assert (context.config.stall_after, context.config.grace, context.config.timeout) == (180.0, 7.0, 540.0)


@pytest.mark.parametrize(("make", "words"), [
    (lambda path: path.write_bytes(b"\xff\xfe"), "not UTF-8"), (lambda path: path.mkdir(), "cannot be read"),
])  # fmt: skip
def test_a_settings_file_that_cannot_be_read_is_one_sentence(root, make, words):
    make(root / "agent.yaml")
    with pytest.raises(OperatorError, match=words):
        open_context(root, environ={})


def test_what_is_said_goes_to_stderr_and_tokens_differ(root, capsys):
    context = open_context(root, environ={})
    context.say("one line")
    assert capsys.readouterr().err == "one line\n"
    assert len({context.token() for _ in range(10)}) == 10
