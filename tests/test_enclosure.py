"""The cell of a run: what its agent reads, writes, cannot touch and never sees, and what reaches it of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agents import checks, enclosure
from essentials import records
from tests.support import boxes
from tests.support.needs import needs_bwrap
from tests.support.world import git

if TYPE_CHECKING:
    from agents.context import Context
    from agents.plan import RunPlan

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
LEVELS = ("none", "partial", "full")
PASSWORD = "hunter2"

# What an operator's own configuration holds that is nobody's business, and what would run programs.
PRIVATE_KEYS = {
    "remote.origin.url": f"https://ada:{PASSWORD}@example.org/shop.git", "http.extraheader": f"Authorization: {PASSWORD}",
    "credential.helper": f"!echo password={PASSWORD}", "core.sshCommand": f"ssh -i /home/ada/{PASSWORD}", "core.fsmonitor": PASSWORD,
    "core.hooksPath": PASSWORD, "core.pager": PASSWORD, "core.editor": PASSWORD, "filter.x.clean": PASSWORD, "diff.external": PASSWORD,
    "include.path": PASSWORD, "alias.st": f"!{PASSWORD}", "url.https://x/.insteadOf": PASSWORD, "branch.main.remote": PASSWORD,
}  # fmt: skip


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """A repository with secrets, run commands of another run, and some boxes."""
    made, _ = boxes.make_context(tmp_path)
    root = made.layout.root
    for name in (
        ".env",
        ".env.local",
        ".env.test",
        "src/.env",
        ".claude/commands/run_c0de/x.md",
        ".claude/commands/own.md",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("A=1\n")
    return made


def plan(context: Context, run_type: str = "scout", level: str = "none", **command: Any) -> RunPlan:
    """The plan of a run at the isolation *level* whose engine wants *command*."""
    made = boxes.planned(context, run_type=run_type)
    wanted = records.replace(made.command, argv=("true",), **command)
    state = records.replace(made.state, isolation=level)
    return records.replace(made, command=wanted, state=state)


def with_settings(context: Context, **settings: Any) -> Context:
    return records.replace(context, config=records.replace(context.config, **settings))


# --- What is seen -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run_type", ["scout", "plan", "review", "benchmark"])
def test_a_run_that_reads_sees_the_checkout_and_changes_nothing_of_it(context: Context, run_type: str) -> None:
    """T131: what it may write is its own and lies in its box (S01)."""
    made, root = plan(context, run_type), context.layout.root
    cell, box = enclosure.cell(context, made, ENV), context.store.box(made.meta.run_name)
    assert cell.cwd == root
    assert cell.write == (box.outbox, box.home)
    assert cell.freeze == ()
    assert {root, root / ".git"} <= set(cell.read)
    own = {root / ".agents", root / "agent_box", root / ".claude/commands"}
    assert root / ".claude/commands/own.md" in cell.read
    assert not [path for path in cell.read if path.name.startswith("run_")]
    secrets = {root / ".env", root / ".env.local", root / "src/.env"}
    assert set(cell.hide) == own | secrets | always_hidden(context)


def test_a_run_that_edits_sees_its_airlock_and_the_history_alone(context: Context) -> None:
    """T125, T131: the checkout itself is not there at all (S01, S04)."""
    made, root = plan(context, "fix"), context.layout.root
    made.root.mkdir(parents=True)
    for name in (".env", ".env.test", "code.py"):
        (made.root / name).write_text("A=1\n")
    cell, box = enclosure.cell(context, made, ENV), context.store.box(made.meta.run_name)
    assert cell.cwd == root / "agent_box" / "trees" / made.meta.run_name
    assert cell.write == (made.root, box.outbox, box.home)
    assert cell.freeze == (made.root / ".git",)
    assert root / ".git" in cell.read
    assert not [path for path in cell.read if root.is_relative_to(path)]
    assert set(cell.hide) == {made.root / ".env", *always_hidden(context)}


def test_what_engine_operator_and_airlock_add_is_added(context: Context, tmp_path: Path) -> None:
    index, tools, linked = tmp_path / "index", tmp_path / "tools", context.layout.root / "node_modules"
    made = plan(context, "fix", read=(tools,), write=(index,))
    cell = enclosure.cell(with_settings(context, read=("/opt/more",)), made, ENV, (linked,))
    assert {tools, Path("/opt/more"), linked} <= set(cell.read)
    assert cell.write[-1] == index
    assert len(cell.write) == 4


def test_what_the_operator_types_is_readable_and_the_home_never(context: Context, tmp_path: Path) -> None:
    """S03: of the machine it sees what its own program needs."""
    script, home = tmp_path / "agent.py", tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    script.write_text("pass\n")
    made = plan(context)
    argv = (sys.executable, str(script), str(home), f"--key={home}/.ssh")
    made = records.replace(made, command=records.replace(made.command, argv=argv))
    cell = enclosure.cell(context, made, {**ENV, "HOME": str(home)})
    assert script in cell.read
    assert not [path for path in cell.read if path in {home, home / ".ssh", tmp_path, Path("/")}]


@pytest.mark.parametrize("level", LEVELS)
def test_a_cell_has_the_level_that_the_run_was_planned_with(context: Context, level: str) -> None:
    """T147: it is the state's word that counts."""
    made = plan(context, level=level, nested=level == "full")
    cell = enclosure.cell(context, made, ENV)
    assert (cell.level, cell.nested) == (level, level == "full")


NETWORK = [
    ("auto", True, True), ("auto", False, False), ("on", True, True), ("on", False, True), ("off", True, False), ("off", False, False),
]  # fmt: skip


@pytest.mark.parametrize(("setting", "needed", "there"), NETWORK)
def test_the_network_is_there_where_it_is_needed_or_wanted(
    context: Context, setting: str, needed: bool, there: bool
) -> None:
    cell = enclosure.cell(with_settings(context, network=setting), plan(context, network=needed), ENV)
    assert cell.network is there


def always_hidden(context: Context) -> set[Path]:
    """What stays hidden in every cell."""
    root, common = context.layout.root, context.repo.common_dir
    return {root / ".agents", root / "agent_box", common / "config.worktree", common / "worktrees"}


def registered(context: Context, *names: str) -> list[Path]:
    """Work trees of those *names* with settings of their own that are nobody else's business."""
    root = context.layout.root
    git(root, "config", "extensions.worktreeConfig", "true")
    trees = [root / "agent_box" / "trees" / name for name in names]
    for tree in trees:
        git(root, "worktree", "add", "-q", "--detach", str(tree))
        git(tree, "config", "--worktree", "http.extraHeader", f"{PASSWORD} of {tree.name}")
    return trees


def test_of_the_registrations_a_cell_shows_its_own_without_its_settings(context: Context, tmp_path: Path) -> None:
    """S03, S04: whatever the `.git` of a tree says, it names a registration of this repository or nothing."""
    one, _ = registered(context, "one", "two")
    known = context.repo.common_dir / "worktrees"
    cell = enclosure.command_cell(context, "full", one, tmp_path / "private")
    assert known / "one" in cell.read
    assert {known, known / "one" / "config.worktree"} <= set(cell.hide)
    for said in (f"gitdir: {tmp_path}", "gitdir: ..", "gitdir: \0", "gitdir: " + "x" * 9000, f"gitdir: {known}/.."):
        (one / ".git").write_text(said)
        forged = enclosure.command_cell(context, "full", one, tmp_path / "private")
        assert (set(forged.read), known in forged.hide) == (set(cell.read) - {known / "one"}, True), said


def test_credentials_of_submodules_and_secrets_of_linked_folders_are_hidden(context: Context, repo: Path) -> None:
    """S03, S04: what `link:` brings is the operator's checkout, with the .env files in it."""
    module = repo / ".git" / "modules" / "lib" / "config"
    module.parent.mkdir(parents=True)
    module.write_text("[remote]\n")
    (repo / "deps").mkdir()
    (repo / "deps" / ".env").write_text("X=1\n")
    given = records.replace(context, config=records.replace(context.config, link=("deps",)))
    cell = enclosure.command_cell(given, "full", repo, repo / ".agents" / "p", enclosure.linked(given))
    assert {module, repo / "deps" / ".env"} <= set(cell.hide)


@pytest.mark.parametrize("name", ["keys", "alias/runs", ".agents", "in/out", "nothing", "README.md"])
def test_a_folder_behind_a_link_or_of_the_box_is_not_linked(
    context: Context, repo: Path, tmp_path: Path, name: str
) -> None:
    """S03: a link in the repository is a stranger's, and what `link:` names is shown to the agent."""
    (tmp_path / "secret").mkdir()
    (repo / ".agents" / "runs").mkdir(parents=True, exist_ok=True)
    (repo / "keys").symlink_to(tmp_path / "secret")
    (repo / "alias").symlink_to(".agents")
    (repo / "in").mkdir()
    (repo / "in" / "out").symlink_to(tmp_path / "secret")
    given = records.replace(context, config=records.replace(context.config, link=(name,)))
    assert enclosure.linked(given) == ()


def test_what_one_command_left_in_its_home_is_gone_for_the_next(context: Context, tmp_path: Path) -> None:
    """M18: an agent's work that a `check:` runs must not speak to the `verify:` of its own merge."""
    first = enclosure.command_cell(context, "none", context.layout.root, tmp_path / "private")
    (first.write[-1] / "usercustomize.py").write_text("evil")
    second = enclosure.command_cell(context, "none", context.layout.root, tmp_path / "private")
    assert list(second.write[-1].iterdir()) == []


CERTIFICATES = [
    ("SSL_CERT_FILE", "/opt/ca.pem", True), ("SSL_CERT_DIR", "/opt/ca", True), ("NODE_EXTRA_CA_CERTS", "/opt/n.pem", True),
    ("REQUESTS_CA_BUNDLE", "/opt/r.pem", True), ("CURL_CA_BUNDLE", "/opt/c.pem", True), ("SSL_CERT_FILE", "ca.pem", False),
    ("SSL_CERT_FILE", "", False), ("SSH_AUTH_SOCK", "/run/agent", False),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "seen"), CERTIFICATES)
def test_certificates_that_its_environment_names_are_readable(
    context: Context, name: str, value: str, seen: bool
) -> None:
    """Behind a proxy of the operator's own nothing could be reached without them; a repository's file names none."""
    operators = records.replace(context, environ={**ENV, name: value})
    assert (Path(value) in enclosure.cell(operators, plan(context), ENV).read) is seen
    assert not value or Path(value) not in enclosure.cell(context, plan(context), {**ENV, name: value}).read


# --- The configuration of git -----------------------------------------------------------------------------------------


def shown(context: Context, *words: str) -> str:
    """What git reads in the configuration that an agent gets."""
    made = plan(context)
    cell = enclosure.cell(context, made, ENV)
    assert list(cell.instead) == [context.repo.common_dir / "config"]
    file = cell.instead[context.repo.common_dir / "config"]
    assert file.parent == context.store.box(made.meta.run_name).private
    return git(context.layout.root, "config", "--file", str(file), *words)


def test_of_the_configuration_an_agent_sees_what_its_git_needs_and_no_secret(context: Context) -> None:
    """S03, G21: no remote, no helper, no header, no program."""
    for key, value in PRIVATE_KEYS.items():
        git(context.layout.root, "config", key, value)
    git(context.layout.root, "config", "user.email", "ada@example.org")
    listed = shown(context, "--list")
    assert PASSWORD not in listed
    keys = {line.partition("=")[0] for line in listed.splitlines()}
    assert {"core.repositoryformatversion", "core.bare", "user.email"} <= keys
    assert not {key.lower() for key in PRIVATE_KEYS} & {key.lower() for key in keys}


@pytest.mark.parametrize(
    "name",
    ['Ada "the" King', "back\\slash", "new\nline", "tab\there", "# no comment ; here", " spaces ", "é \U0001f40c", '"]\n[core]\nbare = true'],
)  # fmt: skip
def test_a_name_of_any_kind_is_the_same_inside(context: Context, name: str) -> None:
    git(context.layout.root, "config", "user.name", name)
    assert shown(context, "--get", "user.name") == name + "\n"
    assert shown(context, "--get", "core.bare") == "false\n"


def test_a_key_without_a_value_keeps_its_meaning(context: Context) -> None:
    """To git it is true, and an empty value is false."""
    config = context.repo.common_dir / "config"
    config.write_text(config.read_text() + "[core]\n\tignorecase\n[core]\n\tsymlinks =\n")
    assert shown(context, "--type=bool", "--get", "core.ignorecase") == "true\n"
    assert shown(context, "--type=bool", "--get", "core.symlinks") == "false\n"


def test_the_format_of_the_repository_is_kept(context: Context) -> None:
    """A git that is not told of an extension would read the objects wrongly."""
    git(context.layout.root, "config", "core.repositoryFormatVersion", "1")
    git(context.layout.root, "config", "extensions.preciousObjects", "true")
    assert shown(context, "--get", "core.repositoryformatversion") == "1\n"
    assert shown(context, "--get", "extensions.preciousobjects") == "true\n"


# --- What is lent -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_a_login_is_seen_in_the_agents_home_and_is_the_operators_own(
    context: Context, tmp_path: Path, level: str
) -> None:
    login = tmp_path / "login.json"
    login.write_text("token\n")
    made = plan(context, level=level, lend=((".tool/login.json", login), (".tool/absent.json", tmp_path / "absent")))
    home = context.store.box(made.meta.run_name).home
    # A resume finds what the first start has left.
    cell = [enclosure.cell(context, made, ENV) for _ in range(2)][-1]
    lent = {place: source for place, source in cell.instead.items() if place.is_relative_to(home)}
    assert lent == {home / ".tool/login.json": login}
    # Without mounts a link has to do; with them there is nothing in the box that could lead out of it.
    assert (home / ".tool/login.json").is_symlink() is (level != "full")
    assert level == "full" or (home / ".tool/login.json").read_text() == "token\n"
    assert not os.path.lexists(home / ".tool/absent.json")


def test_what_is_lent_is_looked_for_in_the_operators_home(context: Context) -> None:
    login = Path.home() / "login.json"
    login.write_text("token\n")
    made = plan(context, lend=(("login.json", Path("~/login.json")),))
    cell = enclosure.cell(context, made, ENV)
    assert login in cell.instead.values()


# --- Commands of the repository ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("setting", "there"), [("auto", False), ("on", True), ("off", False)])
def test_a_command_of_the_repository_gets_its_tree_a_home_and_no_network(
    context: Context, tmp_path: Path, level: str, setting: str, there: bool
) -> None:
    """T147: what it runs is the agent's work."""
    tree, private, linked = tmp_path / "tree", tmp_path / "private", tmp_path / "node_modules"
    tree.mkdir()
    (tree / ".git").write_text("gitdir: elsewhere\n")
    (tree / ".env").write_text("A=1\n")
    own = with_settings(context, network=setting, read=("/opt/more",))
    cell = enclosure.command_cell(own, level, tree, private, (linked,))
    assert (cell.level, cell.cwd, cell.network, cell.nested) == (level, tree, there, False)
    assert cell.write == (tree, private / "command-home")
    assert (private / "command-home").is_dir()
    assert {context.repo.common_dir, linked, Path("/opt/more")} <= set(cell.read)
    assert context.layout.root not in cell.read
    assert (cell.freeze, set(cell.hide)) == ((tree / ".git",), {tree / ".env", *always_hidden(context)})
    assert set(cell.instead) == {context.repo.common_dir / "config"}


def test_a_tree_without_git_has_nothing_to_freeze(context: Context, tmp_path: Path) -> None:
    """The merged result is tried in a plain folder."""
    (tmp_path / "tree").mkdir()
    assert enclosure.command_cell(context, "none", tmp_path / "tree", tmp_path / "private").freeze == ()


# --- The machine ------------------------------------------------------------------------------------------------------


def test_the_operators_word_is_the_most_that_is_offered(context: Context) -> None:
    """T147: `none` is not even tried for more, and leaves nothing behind."""
    assert enclosure.offered(with_settings(context, isolation="none")).level == "none"
    assert not (Path(context.environ["HOME"]) / ".local").exists()


@needs_bwrap
def test_what_was_found_out_about_the_machine_is_kept_outside_of_the_repository(context: Context) -> None:
    assert enclosure.offered(with_settings(context, isolation="full")).level == "full"
    kept = list((Path(context.environ["HOME"]) / ".local/state/agent-box").iterdir())
    assert [path.name for path in kept] == ["isolation-full.json"]


LOOK = """
git log --oneline | wc -l
git config --list
cat .env; find .agents .claude/commands -type f
echo evil > README.md
echo kept > "$HOME/kept"
echo end
"""


@needs_bwrap
def test_behind_the_wall_the_cell_is_what_it_says(context: Context, tmp_path: Path) -> None:
    """T131: history yes, credentials, secrets and the box's own data no, and nothing of the checkout changes (S01, S04)."""
    git(context.layout.root, "config", "remote.origin.url", PRIVATE_KEYS["remote.origin.url"])
    made = plan(context, level="full")
    box = context.store.box(made.meta.run_name)
    for folder in (box.outbox, box.home):
        folder.mkdir(parents=True)
    cell = enclosure.cell(context, made, ENV)
    env = {"PATH": os.defpath, "HOME": str(box.home)}
    done = checks.run_command(LOOK, cell, env, timeout=60, log=tmp_path / "log", limit=10_000)
    lines = done.tail.splitlines()
    assert (lines[0], lines[-1], done.exit_code) == ("1", "end", 0), done.tail
    assert PASSWORD not in done.tail
    assert "A=1" not in done.tail
    assert [line for line in lines if line.startswith((".agents", ".claude"))] == [".claude/commands/own.md"]
    assert (context.layout.root / "README.md").read_text() == "a project\n"
    assert (box.home / "kept").read_text() == "kept\n"
    untouched = subprocess.run(
        ["git", "config", "remote.origin.url"], cwd=context.layout.root, capture_output=True, check=True
    )
    assert PASSWORD in untouched.stdout.decode()


@needs_bwrap
def test_registrations_of_other_runs_come_and_go_while_a_sandbox_is_made(context: Context, tmp_path: Path) -> None:
    """N03: with settings of its own for each work tree; git works in its own, and the others are not there."""
    one, two, three = registered(context, "one", "two", "three")
    cell = enclosure.command_cell(context, "full", one, tmp_path / "private")
    git(context.layout.root, "worktree", "remove", "--force", str(two))
    look = f"git rev-parse HEAD; git status --short; git config --list; ls {context.repo.common_dir / 'worktrees'}; echo end"
    env = {"PATH": os.defpath, "HOME": str(cell.write[-1])}
    done = checks.run_command(look, cell, env, timeout=60, log=tmp_path / "log", limit=10_000)
    lines = done.tail.splitlines()
    assert (lines[0], lines[-2:], done.exit_code) == (git(one, "rev-parse", "HEAD").strip(), ["one", "end"], 0), (
        done.tail
    )
    assert PASSWORD not in done.tail
    assert three.is_dir()
