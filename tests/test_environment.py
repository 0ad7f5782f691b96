"""What of the operator's environment an agent gets: what is on the list, what a tracked file may add, nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.engines import registry
from agents.engines.base import BASE_ENV
from agents.environment import allowed, compose, parse
from tests.support.plans import planned

OPERATOR = {
    "PATH": "/usr/bin", "HOME": "/h", "LANG": "C.UTF-8", "LC_TIME": "C", "TZ": "UTC", "USER": "ada",
    "AWS_SECRET": "s3cr3t", "AWS_SECRET_ACCESS_KEY": "s3cr3t", "GITHUB_TOKEN": "s3cr3t", "SSH_AUTH_SOCK": "/s", "GIT_DIR": "/g",
    "LD_PRELOAD": "/x.so", "PYTHONPATH": "/p", "OLLAMA_HOST": "here:1", "ANTHROPIC_API_KEY": "s3cr3t", "X": "shell",
}  # fmt: skip


@pytest.mark.parametrize("name", ["hollow", "command", "scripted"])
def test_an_agent_gets_no_secret_of_the_shell_and_the_values_of_the_test_file(name: str) -> None:
    """T151: AWS_SECRET does not reach it, .env.test's Y does."""
    hollow = name == "hollow"
    argv = () if hollow else ("x",)
    made = planned("scout", engine=registry.engine(name), argv=argv, mind="reflex" if hollow else None)
    # The built-in agent runs no tests, and its libraries would listen to what a stranger's file says.
    assert made.command.env_test is not hollow
    env = compose(OPERATOR, made.command.pass_env, "Y=from-test\n", {"RUN_DIR": "/r"})
    assert "s3cr3t" not in env.values()
    assert env["Y"] == "from-test"
    assert (env["PATH"], env["HOME"], env["LC_TIME"], env["RUN_DIR"]) == ("/usr/bin", "/h", "C", "/r")
    assert not {"X", "GIT_DIR", "LD_PRELOAD", "PYTHONPATH", "SSH_AUTH_SOCK"} & set(env)
    assert ("OLLAMA_HOST" in env) == (name == "hollow")


def test_the_box_and_the_operator_beat_the_file() -> None:
    """T151: in this order."""
    env = compose(
        {"A": "operator", "B": "operator"}, ["A", "B"], "A=file\nB=file\nC=file\nD=file", {"B": "box", "D": "box"}
    )
    assert env == {"A": "operator", "B": "box", "C": "file", "D": "box"}


@pytest.mark.parametrize(
    ("names", "passed"),
    [
        ([], set()),
        (["PATH"], {"PATH"}),
        (["LC_*"], {"LC_TIME"}),
        (["AWS"], set()),
        (["AWS_SECRET"], {"AWS_SECRET"}),
        (["AWS_SECRET*"], {"AWS_SECRET", "AWS_SECRET_ACCESS_KEY"}),
        (["P*TH"], set()),
        (["path"], set()),
        (["NOWHERE", "TZ"], {"TZ"}),
    ],
)
def test_only_names_on_the_list_pass(names: list[str], passed: set[str]) -> None:
    assert set(allowed(OPERATOR, names)) == passed
    assert set(allowed(OPERATOR, iter(names))) == passed


def test_what_every_program_needs_is_no_secret() -> None:
    assert set(allowed(OPERATOR, BASE_ENV)) == {"PATH", "HOME", "LANG", "LC_TIME", "TZ", "USER"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A=1\nB=two words\n", {"A": "1", "B": "two words"}),
        ("export A=1\n export\tB=2", {"A": "1", "B": "2"}),
        ("A = 1\n  B=2  ", {"A": "1", "B": "2"}),
        ("A=", {"A": ""}),
        ("A='one # two'\nB=\"x y\"", {"A": "one # two", "B": "x y"}),
        ("A='one' # note\nB=\"\"\nC='", {"A": "one", "B": "", "C": "'"}),
        ("A=one # note\nB=one#two", {"A": "one", "B": "one#two"}),
        ("A='it''s'", {"A": "it''s"}),
        ("# A=1\n\nnothing\n=x\n1A=x\nA-B=x\nA", {}),
        ("\ufeffA=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("A=1\nA=2", {"A": "2"}),
        ("A=x=y=z", {"A": "x=y=z"}),
        ("A=$(id)\nB=`id`\nC=${HOME}", {"A": "$(id)", "B": "`id`", "C": "${HOME}"}),
        ("A=x\0y\nB=1", {"B": "1"}),
        ("A=x\u2028B=y", {"A": "x\u2028B=y"}),
        ("", {}),
    ],
)
def test_a_test_file_is_read_without_being_run(text: str, found: dict[str, str]) -> None:
    """T151: NAME=value lines, export, quotes and comments; nothing is expanded."""
    assert parse(text) == found


CHOOSES = [
    "PATH", "HOME", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "PYTHONPATH", "PYTHONSTARTUP", "GIT_SSH_COMMAND",
    "GIT_CONFIG_COUNT", "BASH_ENV", "ENV", "IFS", "SHELL", "NODE_OPTIONS", "PERL5OPT", "PERL5LIB", "RUBYOPT", "JAVA_TOOL_OPTIONS",
    "PROMPT_COMMAND", "ZDOTDIR", "AGENT_BOX_RUN", "AGENT_BOX_ENGINE", "RUN_DIR", "OLLAMA_HOST", "ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR",
    "OPENAI_BASE_URL", "OPENAI_API_KEY", "CODEX_HOME", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "SSL_CERT_FILE", "GCONV_PATH",
]  # fmt: skip


@pytest.mark.parametrize("name", CHOOSES)
def test_a_tracked_file_cannot_choose_what_is_run_or_whom_it_talks_to(name: str) -> None:
    """T151: the file is a stranger's in a stranger's repository."""
    assert parse(f"{name}=x\nexport {name}='y'\nA=1") == {"A": "1"}


@pytest.mark.parametrize(
    "name", ["DATA_PATH", "HOMEPAGE", "SHELL_COLOR", "ENVIRONMENT", "DATABASE_URL", "MY_LD_FLAG", "PROXY_COUNT"]
)
def test_an_ordinary_name_is_not_taken_for_such(name: str) -> None:
    assert parse(f"{name}=x") == {name: "x"}


@settings(max_examples=150, deadline=None)
@given(
    st.text(max_size=80)
    | st.lists(st.sampled_from(["A", "=", "'", '"', " #", "\n", "export ", "x", "\0"]), max_size=20).map("".join)
)
def test_any_text_is_read(text: str) -> None:
    for name, value in parse(text).items():
        assert name.isascii()
        assert name.isidentifier()
        assert "\0" not in value
        assert "\n" not in value
