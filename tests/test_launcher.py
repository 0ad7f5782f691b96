"""The way in: ``./agent`` and ``agents/bootstrap.py``, with real shells, real venvs and pip on copies of the checkout."""

from __future__ import annotations

import ast
import io
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import bootstrap, venvs

ROOT = Path(__file__).resolve().parent.parent
PYTHON = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
VERSION = "{}.{}".format(*sys.version_info[:2])
SHELLS = [
    [found, *rest] for name, *rest in (["sh"], ["dash"], ["bash"], ["busybox", "sh"]) if (found := shutil.which(name))
]

# What runs before there is an environment.
LAUNCHING = ("bootstrap.py", "pythons.py", "venvs.py")

PYPROJECT = """
[project]
name = "copy"
dependencies = {dependencies}
[project.optional-dependencies]
test = ["tinyextra"]
"""

# What the CLI's entry does, in small: packages by hand (-S), one repair when an import fails, then the work.
ENTRY = """
import json, os, sys
venv = os.path.dirname(os.path.dirname(sys.executable))
sys.path.append(os.path.join(venv, "lib", "python%d.%d" % sys.version_info[:2], "site-packages"))
try:
    import tinydep
except ImportError:
    if os.environ.get("REPAIRED"):
        raise
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from agents import bootstrap
    bootstrap.repair(sys.path[0])
    os.environ["REPAIRED"] = "1"
    os.execv(sys.executable, [sys.executable, "-IS", *sys.argv])
print(json.dumps({"argv": sys.argv[1:], "cwd": os.getcwd(), "venv": venv, "stdin": sys.stdin.read()}))
sys.exit(int(os.environ.get("EXIT", "0")))
"""


def need(program: str) -> str:
    """The program's path; without it the test is skipped, or fails where everything must be there (CI)."""
    found = shutil.which(program)
    if not found:
        (pytest.fail if os.environ.get("AGENT_BOX_REQUIRE_ALL") else pytest.skip)(f"{program} is not installed")
    return found


def wheel(folder: Path, name: str) -> None:
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}.py", "")
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


def script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


class Copy:
    """A checkout of its own in a world of its own: wheels from a folder, one Python on PATH, an empty home."""

    def __init__(self, world: Path, name: str = "box") -> None:
        self.home = world / name
        self.world = world
        (self.home / "agents").mkdir(parents=True)
        shutil.copy(ROOT / "agent", self.home)
        for module in LAUNCHING:
            shutil.copy(ROOT / "agents" / module, self.home / "agents")
        (self.home / "agents" / "__init__.py").touch()
        (self.home / "agents" / "__main__.py").write_text(ENTRY)
        self.depend("tinydep")
        for folder in ("wheels", "bin", "empty"):
            (world / folder).mkdir(exist_ok=True)
        for package in ("tinydep", "tinyextra"):
            wheel(world / "wheels", package)
        if not (world / "bin" / "python3").exists():
            (world / "bin" / "python3").symlink_to(PYTHON)
        self.env = {
            "PATH": f"{world / 'bin'}:/usr/bin:/bin",
            "HOME": str(world / "empty"),
            "LANG": "C.UTF-8",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(world / "wheels"),
        }

    @property
    def venv(self) -> Path:
        return self.home / ".venv"

    @property
    def place(self) -> venvs.Place:
        return venvs.Place(self.home, self.venv)

    def depend(self, *names: str) -> None:
        (self.home / "pyproject.toml").write_text(PYPROJECT.format(dependencies=json.dumps(names)))

    def stamp(self) -> venvs.Stamp:
        stamp = venvs.read_stamp(self.place)
        assert stamp is not None
        return stamp

    def start(self, *arguments: str, command=None, cwd=None, **env: str) -> subprocess.CompletedProcess[str]:
        argv = [*(command or [str(self.home / "agent")]), *arguments]
        return subprocess.run(
            argv, env=self.env | env, cwd=cwd or self.world, capture_output=True, text=True, input="in", timeout=100
        )

    def answer(self, *arguments: str, **options) -> dict:
        """Start, and return what the entry saw; it must have run silently and well."""
        done = self.start(*arguments, **options)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    def bootstrap(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return self.start(*arguments, command=[PYTHON, "-I", str(self.home / "agents" / "bootstrap.py")], **env)

    def background(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.home / "agent"],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


# A command line that finds a package missing when it is at work already.
COMMANDS = """
import json, os, sys
def run(argv):
    if argv[0] == "absurd":
        import nowhere_to_be_had
    import tinydep
    print(json.dumps({"argv": argv, "stdin": sys.stdin.read(), "mended": os.environ.get("AGENT_BOX_MENDED")}))
    return 7
"""


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """A copy whose environment stands, made by its first start in a hostile environment and under an odd name."""
    made = Copy(tmp_path_factory.mktemp("way"), 'it\'s "a" $(box)\n;')
    hostile = {"PYTHONPATH": "/nowhere", "PYTHONHOME": "/nowhere", "VIRTUAL_ENV": "/nowhere", "CDPATH": "/:/usr"}
    done = made.start("first", **hostile, PIP_TARGET=str(made.world / "stray"), PIP_USER="1")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["argv"] == ["first"]
    assert "making" in done.stderr
    assert "installing 1 packages" in done.stderr
    assert not (made.world / "stray").exists()
    return made


def test_arguments_streams_and_exit_code_pass_through(made: Copy) -> None:
    odd = ["", "two words", "new\nline", "*", "$HOME", "'", '"', "\\", "--", "-x", "ü\t"]
    done = made.start(*odd, EXIT="7")
    assert done.returncode == 7
    seen = json.loads(done.stdout)
    assert (seen["argv"], seen["stdin"], seen["cwd"]) == (odd, "in", str(made.world))


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: Path(shell[0]).name)
def test_finds_its_folder_however_it_is_called(made: Copy, tmp_path: Path, shell: list[str]) -> None:
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    (tmp_path / "direct").symlink_to(made.home / "agent")
    (elsewhere / "relative\n").symlink_to("../direct")
    (tmp_path / "folder").symlink_to(made.home)
    (elsewhere / "agents").mkdir()  # must not be taken for the checkout's
    here = os.path.relpath(made.home / "agent", elsewhere)
    for called in (made.home / "agent", here, "relative\n", "./relative\n", "../direct", tmp_path / "folder" / "agent"):
        seen = made.answer("x", command=[*shell, str(called)], cwd=elsewhere, CDPATH=f"/:{tmp_path}")
        assert (seen["argv"], seen["cwd"]) == (["x"], str(elsewhere))
        assert Path(seen["venv"]).resolve() == made.venv


def test_found_on_path(made: Copy, tmp_path: Path) -> None:
    (tmp_path / "agent").symlink_to(made.home / "agent")
    assert made.answer(command=["agent"], PATH=f"{tmp_path}:/usr/bin:/bin")["venv"] == str(made.venv)


def test_a_ready_start_runs_no_process_but_python(made: Copy, tmp_path: Path) -> None:
    log = tmp_path / "strace"
    made.answer(command=[need("strace"), "-f", "-qq", "-e", "trace=execve,clone,clone3,fork,vfork", "-o", str(log),
                         str(made.home / "agent")])  # fmt: skip
    calls = [line.split(maxsplit=1)[1] for line in log.read_text().splitlines() if "(" in line]
    assert [call.split("(")[0] for call in calls] == ["execve", "execve"]
    assert "/.venv/bin/python" in calls[1]


def test_a_touched_pyproject_installs_nothing(made: Copy) -> None:
    before = made.stamp()
    for shift in (-1000, 1000):  # an older file is a change as much as a newer one
        then = time.time() + shift
        os.utime(made.home / "pyproject.toml", (then, then))
        assert made.answer(PIP_FIND_LINKS="/nowhere")
        assert made.stamp() == before
        assert made.venv.joinpath(".ready").stat().st_mtime_ns == (made.home / "pyproject.toml").stat().st_mtime_ns


def test_ten_starts_at_once_make_one_environment(copy: Copy) -> None:
    starts = [copy.background() for _ in range(10)]
    ends = [start.communicate(timeout=100) for start in starts]
    assert [start.returncode for start in starts] == [0] * 10, ends
    assert sum("making" in err for _, err in ends) == 1
    assert any("waiting" in err for _, err in ends)
    # The same for a repair that all ten find necessary.
    shutil.rmtree(copy.venv / "lib")
    starts = [copy.background() for _ in range(10)]
    ends = [start.communicate(timeout=100) for start in starts]
    assert [start.returncode for start in starts] == [0] * 10, ends
    assert sum("making" in err for _, err in ends) == 1


@pytest.mark.parametrize(
    ("moment", "whole"),
    [("pyvenv.cfg", False), ("lib/python*/site-packages/pip", True)],
    ids=["the start alone", "with its children"],
)
def test_killed_in_the_middle_the_next_start_works(copy: Copy, moment: str, whole: bool) -> None:
    start = copy.background()
    deadline = time.monotonic() + 60
    while not list(copy.venv.glob(moment)) and time.monotonic() < deadline:
        time.sleep(0.01)
    # Without its children, the shell and bootstrap.py die, and venv or pip go on writing behind our back.
    ours = [start.pid, *children(start.pid)]
    if whole:
        os.killpg(start.pid, signal.SIGKILL)
    else:
        for pid in ours:
            os.kill(pid, signal.SIGKILL)
    start.communicate(timeout=60)
    assert not (copy.venv / ".ready").exists()
    done = copy.start("again")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["argv"] == ["again"]
    assert not list(copy.home.glob(".venv.agent-box-*"))


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def dangle(copy: Copy) -> None:
    (copy.venv / "bin" / "python").unlink()
    (copy.venv / "bin" / "python").symlink_to("/nowhere/python3")


WRECKS = {
    "no interpreter": lambda copy: (copy.venv / "bin" / "python").unlink(),
    "dangling interpreter": dangle,
    "no packages": lambda copy: shutil.rmtree(copy.venv / "lib"),
    "truncated stamp": lambda copy: os.truncate(copy.venv / ".ready", 20),
}


@pytest.mark.parametrize("wreck", WRECKS)
def test_a_broken_environment_is_seen_to_be_broken(made: Copy, tmp_path: Path, wreck: str) -> None:
    torn = Copy(tmp_path)
    shutil.copytree(made.venv, torn.venv, symlinks=True)
    stamp = made.stamp()._replace(venv=str(torn.venv))
    (torn.venv / ".ready").write_text(json.dumps(stamp._asdict()))
    wanted = venvs.read_wanted(torn.home, (), stamp)
    assert venvs.is_ready(torn.place, wanted, venvs.read_stamp(torn.place))
    WRECKS[wreck](torn)
    assert not venvs.is_ready(torn.place, wanted, venvs.read_stamp(torn.place))


@pytest.mark.parametrize("wreck", ["dangling interpreter", "no packages"])
def test_a_broken_environment_is_made_anew(made: Copy, wreck: str) -> None:
    before = made.stamp().made
    WRECKS[wreck](made)
    done = made.start("x")
    assert done.returncode == 0, done.stderr
    assert "making" in done.stderr
    assert "moved" not in done.stderr
    assert made.stamp().made > before
    assert made.answer("y")["argv"] == ["y"]


@pytest.mark.parametrize(
    "lie",
    [{"venv": "/nowhere/.venv"}, {"python": "3.8"}, {"holds": ["gone"]}, {"digest": "0"}],
    ids=lambda lie: next(iter(lie)),
)
def test_a_stamp_that_does_not_fit_is_not_believed(made: Copy, lie: dict) -> None:
    truth = made.stamp()
    wanted = venvs.read_wanted(made.home, (), truth)
    assert venvs.is_ready(made.place, wanted, truth)
    (made.venv / ".ready").write_text(json.dumps((truth._replace(**lie))._asdict()))
    assert not venvs.is_ready(made.place, wanted, venvs.read_stamp(made.place))
    (made.venv / ".ready").write_text(json.dumps(truth._asdict()))
    made.start()  # the stamp is true again but as young as this test: the launcher asks, and nothing is made
    assert made.stamp() == truth


def test_a_moved_checkout_gets_its_environment_anew(made: Copy, copy: Copy) -> None:
    # Moved together with its checkout: what stands in it names the place where it was made.
    shutil.copytree(made.venv, copy.venv, symlinks=True)
    done = copy.start()
    assert done.returncode == 0
    assert "making" in done.stderr
    assert copy.stamp().venv == str(copy.venv)
    assert copy.answer()["venv"] == str(copy.venv)


def test_a_package_missing_in_the_middle_of_a_command_is_fetched_and_the_command_runs_again(copy: Copy) -> None:
    """By the true way in; the launcher's own look at the environment, which is a shell's, does not see it missing."""
    shutil.copy(ROOT / "agents" / "__main__.py", copy.home / "agents")
    (copy.home / "essentials").mkdir()
    for module in ("__init__.py", "packages.py"):
        shutil.copy(ROOT / "essentials" / module, copy.home / "essentials")
    (copy.home / "agents" / "lean.py").write_text("def main(argv):\n    return None\n")
    (copy.home / "agents" / "cli.py").write_text(COMMANDS)
    assert copy.start("first").returncode == 7
    (package,) = copy.venv.glob("lib/python3*/site-packages/tinydep.py")
    package.unlink()
    done = copy.start("two words", "-x", "")
    assert done.returncode == 7, done.stderr
    assert json.loads(done.stdout) == {"argv": ["two words", "-x", ""], "stdin": "in", "mended": "1"}
    assert "making" in done.stderr
    again = copy.start("later")
    assert (again.returncode, again.stderr, json.loads(again.stdout)["mended"]) == (7, "", None)
    # What no environment will have is tried for once; what is not ours to mend is left alone.
    lost = copy.start("absurd")
    assert (lost.returncode, lost.stdout) == (4, "")
    assert lost.stderr.count("making") == 1
    assert "No module named 'nowhere_to_be_had'" in lost.stderr
    entry = [str(copy.venv / "bin" / "python"), "-I", str(copy.home / "agents" / "__main__.py")]
    installed = copy.start("absurd", command=entry)
    assert (installed.returncode, installed.stdout) == (4, "")
    assert "making" not in installed.stderr
    assert "pip install --force-reinstall agent-box" in installed.stderr


def test_a_package_of_the_machine_with_our_name_is_not_taken_for_ours(copy: Copy) -> None:
    theirs = copy.world / "theirs" / "agents"
    theirs.mkdir(parents=True)
    (theirs / "__init__.py").write_text("raise SystemExit('theirs')")
    path = fake_python(copy, "crowded", "", f"sys.path.insert(0, {json.dumps(str(theirs.parent))})")
    done = copy.start("x", PATH=f"{path}:/usr/bin:/bin")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["argv"] == ["x"]


def test_a_new_dependency_or_extra_is_added_in_place(copy: Copy) -> None:
    assert copy.start().returncode == 0
    inode = (copy.venv / "pyvenv.cfg").stat().st_ino
    assert copy.bootstrap("--test", str(copy.home)).returncode == 0
    assert {"tinydep.py", "tinyextra.py"} <= set(copy.stamp().holds)
    copy.depend("tinydep", "tinyextra >= 1")
    assert "installing" in copy.start().stderr
    assert copy.stamp().extras == ["test"]  # what the tests need stays
    assert (copy.venv / "pyvenv.cfg").stat().st_ino == inode


def test_what_is_not_ours_is_moved_aside_untouched(copy: Copy) -> None:
    copy.venv.mkdir()
    (copy.venv / "mine").write_text("precious")
    (copy.home / ".venv.aside-1").touch()
    done = copy.start()
    assert done.returncode == 0, done.stderr
    assert f"moved to {copy.home / '.venv.aside-2'}" in done.stderr
    assert (copy.home / ".venv.aside-2" / "mine").read_text() == "precious"


@pytest.mark.parametrize("kind", ["file", "link", "dangling link", "empty"])
def test_an_occupied_place_is_cleared_without_loss(copy: Copy, kind: str) -> None:
    target = copy.world / "target"
    target.mkdir()
    (target / ".made-by-agent-box").touch()
    {
        "file": lambda: copy.venv.write_text("mine"),
        "link": lambda: copy.venv.symlink_to(target),
        "dangling link": lambda: copy.venv.symlink_to("/nowhere"),
        "empty": copy.venv.mkdir,
    }[kind]()
    said = io.StringIO()
    with (copy.world / "lock").open("w") as lock:
        bootstrap.Maker(copy.place, venvs.Wanted((), (), 0), lock, said)._clear()
    assert copy.place.mark.is_file()
    assert not copy.venv.is_symlink()
    assert ("moved to" in said.getvalue()) is (kind != "empty")
    assert os.path.lexists(copy.place.beside(".aside-1")) is (kind != "empty")
    assert (target / ".made-by-agent-box").exists()


def test_no_package_no_network_is_a_sentence(copy: Copy) -> None:
    done = copy.start(PIP_FIND_LINKS=str(copy.world / "empty"))
    assert (done.returncode, done.stdout) == (4, "")
    assert "ERROR: No matching distribution found for tinydep" in done.stderr
    assert "check network" in done.stderr
    assert str(copy.venv / "setup.log") in done.stderr
    assert "Traceback" not in done.stderr
    assert not (copy.venv / ".ready").exists()


def test_the_environment_may_stand_elsewhere(copy: Copy) -> None:
    venv = copy.world / "some" / "where"
    done = watched(copy, AGENT_BOX_VENV=str(venv))
    assert "\r  " in done  # a terminal sees the seconds
    assert copy.answer(AGENT_BOX_VENV=str(venv))["venv"] == str(venv)
    assert not copy.venv.exists()
    other = Copy(copy.world, "other")  # two checkouts with the same needs share it
    assert other.answer(AGENT_BOX_VENV=str(venv))["venv"] == str(venv)


def watched(copy: Copy, **env: str) -> str:
    """Start on a terminal; return what it showed."""
    ours, theirs = pty.openpty()
    start = subprocess.Popen([copy.home / "agent"], env=copy.env | env, stdin=theirs, stdout=subprocess.DEVNULL,
                             stderr=theirs, start_new_session=True)  # fmt: skip
    os.close(theirs)
    shown = b""
    while chunk := read(ours):
        shown += chunk
        if b"installing" in shown and shown.count(b"done in") == 2:
            os.write(ours, b"\x04")  # the entry reads its standard input to the end
    os.close(ours)
    assert start.wait(60) == 0, shown
    return shown.decode()


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux says EIO when the last one at the other end is gone
        return b""


def test_an_unwritable_place_names_the_remedy(copy: Copy) -> None:
    (copy.world / "file").touch()  # binds root too, unlike permissions
    done = copy.start(AGENT_BOX_VENV=str(copy.world / "file" / "venv"))
    assert done.returncode == 4
    assert "set AGENT_BOX_VENV to a folder that can be written" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_named_place_that_holds_something_is_refused(copy: Copy) -> None:
    precious = copy.world / "home"
    precious.mkdir(exist_ok=True)
    (precious / "mine").touch()
    done = copy.start(AGENT_BOX_VENV=str(precious))
    assert done.returncode == 2
    assert "holds something else" in done.stderr
    assert [path.name for path in precious.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("arguments", "env", "said"),
    [
        ([], {}, "HOME"),
        (["--what", "."], {}, "--what"),
        (["/nowhere"], {}, "no checkout"),
        (["box"], {"AGENT_BOX_VENV": "relative"}, "absolute"),
        (["box"], {"AGENT_BOX_VENV": "/"}, "absolute"),
    ],
)
def test_wrong_arguments_are_the_callers_fault(
    copy: Copy, arguments: list[str], env: dict[str, str], said: str
) -> None:
    done = copy.bootstrap(*arguments, **env)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize("text", ["[project", "[project]\ndependencies = 3", "", "project = 1", "\udcff"])
def test_a_broken_pyproject_is_a_sentence(copy: Copy, text: str) -> None:
    (copy.home / "pyproject.toml").write_bytes(text.encode(errors="surrogateescape"))
    done = copy.start()
    assert done.returncode == 4
    assert "pyproject.toml cannot be understood" in done.stderr


FAKE = """#!/bin/sh
case "$*" in
{cases}
*bootstrap.py*)
    shift
    exec {python} -I -c 'import runpy, sys
{plant}
sys.executable = sys._base_executable = "{path}"
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")' "$@" ;;
esac
exec {python} "$@"
"""


def fake_python(copy: Copy, folder: str, cases: str, plant: str = "") -> str:
    """Put a python3 into *folder* that answers *cases* like another one would; return the folder as PATH."""
    path = copy.world / folder / "python3"
    path.parent.mkdir()
    script(path, FAKE.format(cases=cases, plant=plant, python=PYTHON, path=path))
    return str(path.parent)


def test_a_python_without_venv_names_the_package(copy: Copy) -> None:
    copy.venv.mkdir()
    (copy.venv / "mine").touch()
    path = fake_python(copy, "debian", "*ensurepip*) echo 'No module named ensurepip' >&2; exit 1 ;;")
    done = copy.start(PATH=path)
    assert done.returncode == 4
    assert "apt install python3-venv" in done.stderr
    assert f"python{VERSION}-venv" in done.stderr
    assert "Traceback" not in done.stderr
    assert (copy.venv / "mine").exists()  # nothing was moved for an attempt that cannot succeed


OLD = "*version_info*) echo 3.9 ;;"
AS_OLD = 'sys.version_info = (3, 9, 2, "final", 0)'


def test_an_old_python_says_what_is_needed(copy: Copy) -> None:
    done = copy.start(PATH=fake_python(copy, "old", OLD, AS_OLD))
    assert done.returncode == 4
    assert "needs Python 3.11 or newer" in done.stderr
    assert "is 3.9.2" in done.stderr
    assert "apt install python3 python3-venv" in done.stderr


def test_an_old_python_hands_over_to_a_newer_one(made: Copy, tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    old = fake_python(copy, "old", OLD, AS_OLD)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "python3.12").symlink_to(PYTHON)
    os.utime(made.home / "pyproject.toml", (1, 1))  # not ready as it is, so that bootstrap.py has to run
    assert made.answer("x", PATH=f"{old}:{tmp_path / 'new'}")["argv"] == ["x"]


def test_no_python_at_all(copy: Copy) -> None:
    done = copy.start(PATH=str(copy.world / "empty"))
    assert done.returncode == 4
    assert "no python3 on PATH" in done.stderr
    assert "apt install" in done.stderr


@pytest.mark.parametrize("module", [*LAUNCHING, "__init__.py"])
def test_what_launches_keeps_the_syntax_of_old_pythons(module: str) -> None:
    tree = ast.parse((ROOT / "agents" / module).read_text(), feature_version=(3, 6))
    top = {name.name for node in tree.body if isinstance(node, ast.Import) for name in node.names}
    origins = {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert not (top | origins) & {"__future__", "dataclasses", "tomllib"}  # younger than 3.6
    ours = {f"agents.{Path(each).stem}" for each in LAUNCHING}
    assert {name for name in top | origins if name.startswith("agents")} <= ours  # nothing else is sure to be as old
    for node in ast.walk(tree):  # evaluated when the function is defined, where `str | None` is an error before 3.10
        if isinstance(node, ast.FunctionDef):
            hints = [node.returns, *(arg.annotation for arg in (*node.args.args, *node.args.kwonlyargs))]
            assert not any(isinstance(hint, ast.BinOp | ast.Subscript) for hint in hints)


@given(st.one_of(st.binary(max_size=200), st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
       lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(venvs.Stamp._fields), inner),
       max_leaves=8).map(lambda value: json.dumps(value).encode())))  # fmt: skip
def test_a_stamp_is_believed_or_not_but_never_raises(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    venv = tmp_path_factory.getbasetemp() / f"stamp-{os.getpid()}"
    venv.mkdir(exist_ok=True)
    (venv / ".ready").write_bytes(content)
    assert venvs.read_stamp(venvs.Place(venv, venv)) is None


@pytest.mark.parametrize("content", ["[" * 100_000, "{}", '{"venv": 1}', "null"])
def test_an_absurd_stamp_is_not_believed(copy: Copy, content: str) -> None:
    copy.venv.mkdir()
    (copy.venv / ".ready").write_text(content)
    assert venvs.read_stamp(copy.place) is None


@pytest.mark.slow
def test_the_environment_that_runs_the_tests_is_left_alone() -> None:
    place = venvs.locate(ROOT, os.environ.get("AGENT_BOX_VENV", ""))
    before = venvs.read_stamp(place)
    if before is None or "test" not in before.extras:
        pytest.skip("these tests run in an environment that tests/run did not make")
    wanted = venvs.read_wanted(ROOT, ("test",), before)
    assert venvs.is_ready(place, wanted, before)
    done = subprocess.run(
        [sys.executable, "-I", ROOT / "agents" / "bootstrap.py", "--test", ROOT],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert venvs.read_stamp(place) == before
