"""Puts the peers of `peers.json` into a cache of the benchmark's own, each in a folder of its own, each once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.measure import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLE: Final = Path(__file__).with_name("peers.json")
"""Names, packages and versions: the only place that says which peers there are."""
_PATIENCE: Final = 900.0
_MARK: Final = ".installed"
_KEPT: Final = 200
"""Characters of an installer's complaint that are shown."""
_INSTALLER: Final = frozenset({"PATH", "HOME", "LANG", "TMPDIR"})
# How the machine reaches its registries is the machine's business, and said by variables that begin so.
_REACHING: Final = ("PIP_", "NPM_CONFIG_", "npm_config_", "SSL_", "NODE_EXTRA_CA", "HTTP_", "HTTPS_", "http_", "https_",
                    "NO_PROXY", "no_proxy")  # fmt: skip


class NotInstalledError(BenchmarkError):
    """A peer cannot be had on this machine; the message says why in a few words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A program that does a part of the same job."""

    name: str
    source: str
    """npm or pypi."""
    package: str
    version: str

    @property
    def title(self) -> str:
        """Its name and version, for the table."""
        return f"{self.name} {self.version}"


def peers(table: Path = TABLE) -> dict[str, Peer]:
    """The peers in the file *table* by their names."""
    rows: list[Mapping[str, Any]] = json.loads(table.read_text("utf-8"))
    return {
        row["name"]: Peer(name=row["name"], source=row["from"], package=row["package"], version=row["version"])
        for row in rows
    }


def install(peer: Peer, cache: Path) -> Path:
    """The folder of *peer* below *cache*, installed if it is not there; raises :class:`NotInstalledError`.

    Nothing of a peer is run for that: packages come as they were built, without the scripts that they bring.
    """
    place = cache.absolute() / f"{peer.name}-{peer.version}"
    if (place / _MARK).exists():
        return place
    # What an interrupted session left is begun anew; an environment cannot be moved, so it is made where it stays.
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for command in _commands(peer, place):
        _run(command)
    (place / _MARK).write_text(f"{peer.package} {peer.version}\n", "utf-8")
    return place


def _commands(peer: Peer, place: Path) -> tuple[tuple[str, ...], ...]:
    if peer.source == "npm":
        words = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-save", f"{peer.package}@{peer.version}")
        return (("npm", "install", "--prefix", str(place), *words),)
    pip = (str(place / "bin" / "python"), "-I", "-m", "pip", "install", "-q", "--disable-pip-version-check")
    return (
        (sys.executable, "-m", "venv", str(place)),
        (*pip, "--only-binary=:all:", f"{peer.package}=={peer.version}"),
    )


def _run(command: tuple[str, ...]) -> None:
    env = {name: value for name, value in os.environ.items() if name in _INSTALLER or name.startswith(_REACHING)}
    try:
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE
        )
    except FileNotFoundError:
        raise NotInstalledError(f"there is no {command[0]} here") from None
    except subprocess.TimeoutExpired:
        raise NotInstalledError(f"its installation took longer than {_PATIENCE:.0f} s") from None
    if done.returncode:
        raise NotInstalledError(f"it could not be installed: {_said(done.stderr)}")


def _said(text: str) -> str:
    """What matters of an installer's complaint: its last line that says error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("error", "npm error"))]
    return (errors or lines or ["it did not say why"])[-1][:_KEPT]
