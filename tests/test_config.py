"""Settings: one precedence, and complaints that name flag, variable, or key and line."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.config import OWN, PREFIX, RESERVED, TEMPLATE, Config, resolve
from agents.errors import OperatorError
from essentials import records

FIELDS = [field.name for field in records.fields(Config)]
DEFAULT = Config()
UNCOMMENTED = re.sub(r"(?m)^# ([a-z_]+: )", r"\1", TEMPLATE)

# For every setting: two ways to write values that are not the default, and what they mean.
SAMPLES: dict[str, tuple[tuple[str, Any], tuple[str, Any]]] = {
    "stall_after": (("7m", 420.0), ("90", 90.0)),
    "linger": (("1s", 1.0), ("0", 0.0)),
    "grace": (("250ms", 0.25), ("3 s", 3.0)),
    "timeout": (("1h30m", 5400.0), ("10", 10.0)),
    "on_stall": (("mark", "mark"), ("mark", "mark")),
    "max_output": (("10MB", 10_000_000), ("4GiB", 4 * 1024**3)),
    "engine": (("claude", "claude"), ("my-engine", "my-engine")),
    "model": (("claude-sonnet-4-5", "claude-sonnet-4-5"), ("hf.co/a/b:Q4_K", "hf.co/a/b:Q4_K")),
    "mind": (("reflex", "reflex"), ("ollama", "ollama")),
    "num_ctx": (("4096", 4096), ("131072", 131_072)),
    "keep_alive": (("-1", "-1s"), ("300", "300s")),
    "call_timeout": (("5s", 5.0), ("10m", 600.0)),
    "max_turns": (("1", 1), ("100", 100)),
    "max_usd": (("2", 2.0), ("$0.50", 0.5)),
    "max_tokens": (("1", 1), ("200000", 200_000)),
    "min_free": (("1GiB", 1024**3), ("1MB", 1_000_000)),
    "loop_after": (("0", 0), ("3", 3)),
    "sandbox": (("full", "full"), ("full", "full")),
    "keep_for": (("30d", 2_592_000.0), ("2w", 1_209_600.0)),
    "keep_runs": (("0", 0), ("50", 50)),
    "ops": (("deploy, db-backup", ("deploy", "db-backup")), ("x", ("x",))),
    "env": (("CI,GOFLAGS,CI", ("CI", "GOFLAGS")), ("_x", ("_x",))),
    "isolation": (("none", "none"), ("partial", "partial")),
    "read": (("/opt/a:/opt/b", ("/opt/a", "/opt/b")), ("/x", ("/x",))),
    "network": (("off", "off"), ("off", "off")),
    "copy": ((".env.test,config/*.yml", (".env.test", "config/*.yml")), ("a/", ("a",))),
    "link": (("node_modules", ("node_modules",)), ("a,b/c", ("a", "b/c"))),
    "setup": (("make deps, now", ("make deps, now",)), ("true", ("true",))),
    "setup_timeout": (("5m", 300.0), ("1", 1.0)),
    "check": (("pytest -q", ("pytest -q",)), ("a && b", ("a && b",))),
    "verify": (("pytest -q", ("pytest -q",)), ("make test", ("make test",))),
    "verify_timeout": (("5m", 300.0), ("1", 1.0)),
    "trust_unsandboxed": (("yes", True), ("on", True)),
    "locks": (("fs_write=0.5", {"fs_write": 0.5}), ("a_tool=1, fs_edit = 0.25", {"a_tool": 1.0, "fs_edit": 0.25})),
    "custom_stressors": (("decay", "decay"), ("decay", "decay")),
    "strict_tools": (("yes", True), ("on", True)),
    "research": (("docs,notes/", ("docs", "notes")), ("a/b", ("a/b",))),
    "step_seconds": (("30s", 30.0), ("1", 1.0)),
    "burden_files": (("1", 1), ("500", 500)),
    "burden_bytes": (("1MiB", 1024**2), ("4MB", 4_000_000)),
    "stagnation_cycles": (("3", 3), ("20", 20)),
    "idle_cycles": (("3", 3), ("20", 20)),
    "goal_cycles": (("3", 3), ("100", 100)),
    "max_steps": (("3", 3), ("12", 12)),
    "prompt_tokens": (("4000", 4000), ("32000", 32_000)),
}
IN_A_PROJECT = [name for name in FIELDS if name not in OWN]


def from_file(text: str) -> Config:
    return resolve({}, {}, text)


def complaint(text: str) -> OperatorError:
    with pytest.raises(OperatorError) as caught:
        from_file(text)
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 300
    return caught.value


def test_nothing_given_is_the_defaults() -> None:
    assert resolve({}, {}, None) == resolve({}, {}, "") == DEFAULT
    assert (DEFAULT.stall_after, DEFAULT.max_output, DEFAULT.on_stall, DEFAULT.timeout) == (
        300.0,
        2_147_483_648,
        "reap",
        None,
    )


def test_every_field_has_samples_and_documentation() -> None:
    assert list(SAMPLES) == FIELDS


@pytest.mark.parametrize("name", FIELDS)
def test_each_setting_from_each_source(name: str) -> None:
    for written, value in SAMPLES[name]:
        assert getattr(resolve({name: written}, {}, None), name) == value
        assert getattr(resolve({}, {PREFIX + name.upper(): written}, None), name) == value
        own = resolve({}, {}, None, own=f"{name}: {written}\n")
        assert getattr(own, name) == value
        assert name in OWN or getattr(from_file(f"{name}: {written}\n"), name) == value


@pytest.mark.parametrize("name", sorted(OWN))
def test_a_projects_file_opens_no_door_in_the_wall(name: str) -> None:
    assert (
        complaint(f"{name}: {SAMPLES[name][0][0]}").message
        == f"agent.yaml line 1: `{name}` is not for a project's file."
    )


def test_a_projects_file_goes_before_the_operators_own_but_lowers_no_floor() -> None:
    config = resolve({}, {}, "grace: 3s\nsandbox: none", own="grace: 4s\nlinger: 5s\nsandbox: full\nenv: [A_TOKEN]")
    assert (config.grace, config.linger, config.sandbox, config.env) == (3.0, 5.0, "full", ("A_TOKEN",))
    with pytest.raises(OperatorError, match=r"agent-box/agent\.yaml line 1"):
        resolve({}, {}, None, own="nonsense: 1")


@pytest.mark.parametrize("path", ["/etc/passwd", "../up", "a/../../b", "~/x"])
@pytest.mark.parametrize("name", ["copy", "link"])
def test_paths_for_an_airlock_stay_inside_the_repository(name: str, path: str) -> None:
    assert "is not a path inside the repository" in complaint(f"{name}: ['{path}']").message


def test_a_projects_file_may_turn_the_network_off_and_never_on() -> None:
    assert "may only turn the network off" in complaint("network: on").message
    assert resolve({"network": "on"}, {}, None).network == "on"
    assert resolve({}, {}, None, own="network: on").network == "on"


def test_a_list_of_commands_keeps_their_commas() -> None:
    assert from_file("verify:\n  - make a,b\n  - pytest\n").verify == ("make a,b", "pytest")


@settings(max_examples=60)
@given(st.data())
def test_flag_before_environment_before_file_before_default(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([one for one in IN_A_PROJECT if one != "sandbox"]))
    chosen = st.none() | st.sampled_from(SAMPLES[name])
    flag, variable, file = data.draw(chosen), data.draw(chosen), data.draw(chosen)
    config = resolve(
        {name: flag and flag[0]},
        {PREFIX + name.upper(): variable[0]} if variable else {},
        f"{name}: {file[0]}\n" if file else None,
    )
    winner = flag or variable or file
    expected = records.replace(DEFAULT, **{name: winner[1]}) if winner else DEFAULT
    assert config == expected


@pytest.mark.parametrize(
    ("flag", "variable", "file", "floor"),
    [
        (None, None, "full", "full"),
        (None, None, "none", "auto"),
        ("none", None, None, "none"),
        ("none", None, "partial", "partial"),
        ("partial", "full", None, "partial"),
        (None, "partial", "full", "full"),
        (None, "full", "none", "full"),
        ("full", "none", "partial", "full"),
    ],
)
def test_the_file_raises_the_sandbox_floor_and_never_lowers_it(
    flag: str | None, variable: str | None, file: str | None, floor: str
) -> None:
    environ = {"AGENT_BOX_SANDBOX": variable} if variable else {}
    assert resolve({"sandbox": flag}, environ, file and f"sandbox: {file}").sandbox == floor


def test_flags_can_be_values_and_absent_ones_are_ignored() -> None:
    flags = {"grace": 2.5, "max_turns": 3, "ops": ("a", "b"), "env": [], "timeout": None, "model": None}
    assert resolve(flags, {}, None) == Config(grace=2.5, max_turns=3, ops=("a", "b"))


def test_a_flag_can_lift_a_limit_of_the_file() -> None:
    assert resolve({"timeout": "none"}, {}, "timeout: 5m").timeout is None
    assert from_file("timeout: off\nkeep_for: never\nkeep_runs: None").timeout is None


def test_other_variables_are_none_of_its_business() -> None:
    environ = {
        "AGENT_BOX_RUN": "25-11-22_1430__x__a1b2",
        "AGENT_BOX_TASK": "x",
        "AGENT_BOX_OTHER": "\ud800",
        "GRACE": "x",
        "AGENT_BOX_GRACE": " ",
        "agent_box_grace": "x",
    }
    assert resolve({}, environ, None) == DEFAULT
    assert RESERVED.isdisjoint(name.upper() for name in FIELDS)


def test_lists_in_the_file() -> None:
    config = from_file("ops: [deploy, 'db-backup', deploy]\nenv:\n  - CI\n  - GOFLAGS\n")
    assert config == Config(ops=("deploy", "db-backup"), env=("CI", "GOFLAGS"))


@pytest.mark.parametrize(
    "text",
    ["", "\n", "# only\n  # comments\n", "---\n", "---\n...\n", "grace:\nops: ~\ntimeout: null\n", "\ufeff# bom\n"],
)
def test_a_file_that_says_nothing(text: str) -> None:
    assert from_file(text) == DEFAULT


def test_old_line_ends_are_line_ends() -> None:
    assert from_file("# comment\rgrace: 4\r").grace == 4
    assert from_file("grace: 4\r\nlinger: 5\r\n") == Config(grace=4, linger=5)


@pytest.mark.parametrize(
    ("text", "start", "hint"),
    [
        ("linger: 1s\n\nstall_after: 5x\n", "agent.yaml line 3: `stall_after`: '5x' is not a duration", "1h30m"),
        ("stal_after: 5m", "agent.yaml line 1: 'stal_after' is not a setting", "Did you mean `stall_after`?"),
        ("stall-after: 5m", "agent.yaml line 1: 'stall-after' is not a setting", "Did you mean `stall_after`?"),
        ("zebra: 5m", "agent.yaml line 1: 'zebra' is not a setting", "stall_after, linger"),
        ("grace: 1\nlinger: 2\ngrace: 3", "agent.yaml line 3: `grace` is already set in line 1", "Remove"),
        (
            "mind: olama",
            "agent.yaml line 1: `mind`: 'olama' is not one of auto, ollama, reflex",
            "Did you mean `ollama`?",
        ),
        ("on_stall: kill-9-everything", "agent.yaml line 1: `on_stall`:", "reap, mark"),
        ("grace: [1]", "agent.yaml line 1: `grace`: a plain value", ""),
        ("grace: {a: 1}", "agent.yaml line 1: `grace`: a plain value", ""),
        ("ops: [[a]]", "agent.yaml line 1: `ops`: a plain value", ""),
        ("ops: {a: 1}", "agent.yaml line 1: `ops`: a plain value", ""),
        ("ops: [A/B]", "agent.yaml line 1: `ops`: 'A/B' is not the name of an op", ""),
        ("env: [A=B]", "agent.yaml line 1: `env`: 'A=B' is not the name of an environment variable", ""),
        ("model: --help", "agent.yaml line 1: `model`: '--help' is not the name of a model", ""),
        ("model: 'a\\nb c'", "agent.yaml line 1: `model`:", ""),
        ('model: "\\e[31m"', r"agent.yaml line 1: `model`: '\x1b[31m' is not", ""),
        ("engine: ''", "agent.yaml line 1: `engine`: '' is not the name of an engine", ""),
        ("max_turns: 0", "agent.yaml line 1: `max_turns`: '0' is not a whole number from 1", ""),
        ("max_turns: 2.5", "agent.yaml line 1: `max_turns`: '2.5' is not a whole number", ""),
        ("max_turns: yes", "agent.yaml line 1: `max_turns`: 'yes' is not a whole number", ""),
        ("keep_runs: -1", "agent.yaml line 1: `keep_runs`:", ""),
        ("keep_alive: 2d", "agent.yaml line 1: `keep_alive`:", "10m"),
        ("stall_after: 0", "agent.yaml line 1: `stall_after`: It must be longer than 0 s", ""),
        ("max_output: 0", "agent.yaml line 1: `max_output`: It must be larger than 0 bytes", ""),
        ("max_output: 2G", "agent.yaml line 1: `max_output`: '2G' is not a size", "2GiB"),
        ("- grace", "agent.yaml line 1: these are not settings", "`name: value`"),
        ("\n\ngrace", "agent.yaml line 3: these are not settings", "`name: value`"),
        ("? [a]\n: b", "agent.yaml line 1: a plain value", ""),
        ("grace: 3\n\tlinger: 4", "agent.yaml line 2 is not YAML", "spaces, not tabs"),
        ("grace: 3: 4", "agent.yaml line 1 is not YAML", "`name: value`"),
        ("grace: 'x", "agent.yaml line 1 is not YAML", ""),
        ("grace: 3\n---\nlinger: 4", "agent.yaml line 2 is not YAML", ""),
        ("grace: 3\nlinger: \x01", "agent.yaml line 2: a character", "UTF-8"),
        ("grace: &a 3\nlinger: *a", "agent.yaml line 1: anchors and aliases", "Write the value out"),
        ("linger: *a", "agent.yaml line 1: anchors and aliases", ""),
        ("grace: !!python/object/apply:os.system ['true']", "agent.yaml line 1: `grace`: a plain value", ""),
        ("grace: !!python/name:os.system x", "agent.yaml line 1: `grace`: a plain value", ""),
        ("grace: !mine 5", "agent.yaml line 1: `grace`: a plain value", ""),
        ("!mine {grace: 5}", "agent.yaml line 1: these are not settings", ""),
        ("[" * 20_000 + "]" * 20_000, "agent.yaml line 1: nested too deeply", ""),
        ("grace: 3\n" + "#" * 70_000, "agent.yaml is larger than 64 KiB", ""),
        ("<<: {grace: 1}", "agent.yaml line 1: '<<' is not a setting", ""),
        ("1: 2", "agent.yaml line 1: '1' is not a setting", ""),
    ],
    ids=range(43),
)
def test_a_complaint_names_line_and_key(text: str, start: str, hint: str) -> None:
    error = complaint(text)
    assert error.message.startswith(start)
    assert hint in error.hint
    assert error.code == 2


def test_a_complaint_names_the_file_as_it_was_called() -> None:
    with pytest.raises(OperatorError, match=r"^sub/agent\.yaml line 1: "):
        resolve({}, {}, "x: 1", path="sub/agent.yaml")


def test_a_complaint_names_the_flag_or_the_variable() -> None:
    with pytest.raises(OperatorError, match=r"^--stall-after: 'x' is not a duration"):
        resolve({"stall_after": "x"}, {}, None)
    with pytest.raises(OperatorError, match=r"^AGENT_BOX_MAX_TURNS: 'x' is not a whole number"):
        resolve({}, {"AGENT_BOX_MAX_TURNS": "x"}, None)
    with pytest.raises(OperatorError, match=r"^--max-turns: 'True'"):
        resolve({"max_turns": True}, {}, None)


def test_an_overridden_value_is_checked_all_the_same() -> None:
    with pytest.raises(OperatorError, match="line 1"):
        resolve({"grace": "1s"}, {}, "grace: x")


BOMBS = [
    "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)),
    "[" * 60_000,
    "{a: " * 15_000,
    "ops:\n" + "".join(" " * n + "-\n" for n in range(1, 300)),
    "- " * 30_000,
    "? " * 30_000,
    '"' + "\\x41" * 15_000,
]


@pytest.mark.parametrize("bomb", BOMBS, ids=range(len(BOMBS)))
def test_a_bomb_is_refused_at_once(bomb: str) -> None:
    start = time.process_time()
    assert complaint(bomb).hint
    assert time.process_time() - start < 2


@settings(max_examples=60)
@given(st.text(max_size=80) | st.text("grace:[]{}&*!|>-'\"\n\t #%@,0159", max_size=60))
def test_any_text_is_settings_or_the_operators_error(text: str) -> None:
    try:
        config, helpful = from_file(text), True
    except OperatorError as error:
        config, helpful = DEFAULT, error.message.startswith("agent.yaml")
    assert isinstance(config, Config)
    assert helpful


def test_the_template_names_every_setting_and_changes_none() -> None:
    assert from_file(TEMPLATE) == DEFAULT
    assert re.findall(r"(?m)^# ([a-z_]+): ", TEMPLATE) == IN_A_PROJECT
    assert max(map(len, TEMPLATE.splitlines())) <= 120


def test_the_uncommented_template_is_the_defaults_written_out() -> None:
    assert UNCOMMENTED != TEMPLATE
    assert from_file(UNCOMMENTED) == DEFAULT
    assert re.findall(r"(?m)^([a-z_]+): ", UNCOMMENTED) == IN_A_PROJECT


def test_a_file_of_comments_does_not_cost_a_yaml_parser() -> None:
    code = "import sys; from agents.config import *; resolve({}, {}, TEMPLATE); sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    "name",
    [
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "db_password",
        "SSH_AUTH_SOCK",
        "DATABASE_URL",
        "GH_PAT",
        "SLACK_WEBHOOK",
    ],
)
def test_a_project_file_cannot_hand_a_secret_to_an_agent_but_its_operator_can(name):
    with pytest.raises(OperatorError, match=f"agent.yaml line 2: `env`: {name} looks like a secret"):
        resolve({}, {}, f"grace: 5s\nenv: [{name}]\n")
    assert resolve({}, {"AGENT_BOX_ENV": name}, None).env == (name,)
