"""The other way in: the wheel, and the console script ``agent`` that it installs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import agents

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("agents", "essentials", "hollow")


def run(*argv: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, cwd=cwd, env=os.environ | env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as an installer would build it, from a copy of what the build reads; no index is asked."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", ".gitignore"):
        shutil.copy(ROOT / name, source)
    for name in (*PACKAGES, "tests"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    done = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", source / "dist", cwd=source)
    assert done.returncode == 0, done.stderr
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_holds_both_packages_whole_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        inside = {name for name in file.namelist() if ".dist-info/" not in name}
    there = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert inside == there


@pytest.mark.slow
def test_the_installed_script_runs_in_a_repository_elsewhere(wheel: Path, tmp_path: Path) -> None:
    place, repository, home = tmp_path / "venv", tmp_path / "repository", tmp_path / "home"
    home.mkdir(exist_ok=True)
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    done = run(
        *(sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"),
        *("install", "--no-deps", "--no-index", wheel),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    # The dependencies are those of the tests' own environment: installing them again would need an index.
    (site,) = place.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    assert run("git", "init", "-q", repository, cwd=tmp_path).returncode == 0

    done = run(place / "bin" / "agent", "--version", cwd=repository, HOME=str(home))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"agent-box {agents.__version__}\n", "")
    assert [path.name for path in repository.iterdir()] == [".git"]

    where = run(python, "-c", "import agents, hollow; print(agents.__file__, hollow.__file__)", cwd=repository)
    assert all(Path(path).is_relative_to(place) for path in where.stdout.split()), where.stdout
