"""What a clean room is fitted with: configuration, attributes, exclusions, the way to the objects."""

from __future__ import annotations

import os
from pathlib import Path

from agents import files, git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


# Attributes of the tree decide what git runs and converts; what stands in info/attributes goes before them all.
# `-working-tree-encoding` would be an error, so that one is unspecified; so is `diff`, whose absence means "look".
_ATTRIBUTES: Final = (
    "* -text -crlf -ident -filter !eol !working-tree-encoding !diff !merge !whitespace !conflict-marker-size"
    " !export-ignore !export-subst !delta\n"
)
# An object that a power cut has emptied would be taken for one that is there already, and never be written again.
_CONFIG: Final = """\
[core]
\trepositoryformatversion = {version}
\tbare = true
\tfileMode = {filemode}
\tsymlinks = {symlinks}
\tignoreCase = false
\tprecomposeUnicode = false
\tautocrlf = false
\tsafecrlf = false
\tfsmonitor = false
\tuntrackedCache = false
\thooksPath = /dev/null
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tprotectHFS = true
\tprotectNTFS = true
\tquotePath = true
\tlogAllRefUpdates = false
\ttrustctime = true
\tcheckStat = default
\tsparseCheckout = {sparsecheckout}
\tsparseCheckoutCone = {sparsecheckoutcone}
\tfsync = {fsync}
\tfsyncMethod = batch
[extensions]
\t{extension}
[gc]
\tauto = 0
[maintenance]
\tauto = false
[advice]
\taddEmbeddedRepo = false
\tupdateSparsePath = false
[submodule]
\trecurse = false
[merge]
\tdirectoryRenames = false
[protocol]
\tallow = never
"""
# Settings of the operator that say how the file system is, or which part of the tree he wants to have.
_ASKED: Final = {
    "core.filemode": "true", "core.symlinks": "true", "core.sparsecheckout": "false",
    "core.sparsecheckoutcone": "true", "core.excludesfile": "",
}  # fmt: skip
_SHA256_DIGITS: Final = 64
_READ_CAP: Final = 16 * 1024**2


def _settings(repo: git.Repository) -> dict[str, str]:
    """The operator's settings that a room takes over, by their lower-case names."""
    names = "|".join(name.partition(".")[2] for name in _ASKED)
    listed = git.run(repo.root, "config", "--null", "--get-regexp", rf"^core\.({names})$").stdout
    pairs = (entry.partition(b"\n")[::2] for entry in listed.split(b"\0") if entry)
    # A key without a value means true.
    return {**_ASKED, **{os.fsdecode(key): os.fsdecode(value) or "true" for key, value in pairs}}


def fittings(repo: git.Repository, *, passing: bool = False) -> dict[str, bytes]:
    """Files of a clean room for *repo*, by their path in it (design, section 7; facts G07-G09, G21, G22, G37, G38).

    The objects of one that is *passing* are not made to survive a power cut.
    What the operator has git ignore, and which part of the tree he wants, is read now: before any agent runs.
    """
    asked = _settings(repo)
    sha256 = len(repo.head or "") == _SHA256_DIGITS
    yes_no = {key.partition(".")[2]: _boolean(value) for key, value in asked.items() if key != "core.excludesfile"}
    patterns = _read(_git_dir(repo) / "info" / "sparse-checkout") if yes_no["sparsecheckout"] == "true" else None
    optional = {"shallow": _read(repo.common_dir / "shallow"), "info/sparse-checkout": patterns}
    return {
        "HEAD": b"ref: refs/heads/none\n",
        "config": _CONFIG.format(
            version=int(sha256),
            extension="objectFormat = sha256" if sha256 else "",
            fsync="none" if passing else "loose-object",
            **yes_no,
        ).encode(),
        "objects/info/alternates": _quoted(repo.common_dir / "objects") + b"\n",
        "info/attributes": _ATTRIBUTES.encode(),
        "info/exclude": _exclusions(repo, asked["core.excludesfile"]),
        **{name: content for name, content in optional.items() if content is not None},
    }


def _boolean(value: str) -> str:
    return "true" if value.lower() in {"true", "yes", "on", "1"} else "false"


def _git_dir(repo: git.Repository) -> Path:
    """The git directory of this work tree: where its own sparse patterns are."""
    link = repo.root / ".git"
    text = _read(link)
    return repo.common_dir if text is None else repo.root / os.fsdecode(text.removeprefix(b"gitdir:").strip())


def _exclusions(repo: git.Repository, excludes_file: str) -> bytes:
    """What the operator has git ignore outside of the tree; the repository's own patterns come last and so decide."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    theirs = repo.root / Path(excludes_file or f"{home}/git/ignore").expanduser()
    found = (_read(theirs, follow=True), _read(repo.common_dir / "info" / "exclude", follow=True))
    return b"\n".join(text for text in found if text)


def _read(path: Path, *, follow: bool = False) -> bytes | None:
    return files.read_capped(path, _READ_CAP, follow=follow)


def _quoted(path: Path) -> bytes:
    """*path* as a line of ``objects/info/alternates``: quoted, for a folder's name may hold a line break."""
    body = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + body + b'"'
