"""The folder of synthesized tools: a pair of files that fit and are signed is a tool, everything else is put away."""

from __future__ import annotations

import json
import os
import stat

from hollow.substrate import synthesis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, Final

    from hollow.memory.files import Files
    from hollow.substrate.synthesis import Tool

    Said = tuple[str, dict[str, Any]]
    Look = tuple[tuple[str, int, int, int, int], ...]
    """Name, inode, size, and times of change of each file, in order: as long as it is the same, so are the tools."""

DYNAMIC: Final = "tools/dynamic"
QUARANTINE: Final = "tools/quarantine"
RETIRED: Final = "tools/retired"
REPLACED: Final = "tools/replaced"
"""Code that is being replaced, for the moment in which neither the old pair nor the new one is whole."""
KEY: Final = "tools/key"
"""What tools are signed with. No capability can name a path in the memory, so no agent can sign (W2)."""

_MAX_FILE: Final = 256 * 1024
"""Bytes of a file that are looked at: far more than any that was published has."""


class Shelf:
    """The tools below *files*, for all agents alike. Whoever asks sees what is there now, in any process (T103, T104).

    Only :meth:`publish` makes a tool. What was placed by hand lacks the signature, and is moved away with an event
    that :meth:`news` gives; a spec without code is thus never a tool (W2, T109, T110).
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._seen: Look | None = None
        self._tools: dict[str, Tool] = {}
        self._news: list[Said] = []

    def loaded(self) -> dict[str, Tool]:
        """Return the tools by name. Cheap while nothing changes; takes the lock where something must be put away."""
        look = self._look()
        if look != self._seen:
            tools, strays = self._scanned()
            if strays:
                # Looked at once more under the lock: half a pair may be one that is just being published.
                with self._files.hold():
                    self._mend()
                    tools, strays = self._scanned()
                    for name, why in strays.items():
                        self._put_away(name, why)
                    look = self._look()
            self._seen, self._tools = look, tools
        return dict(self._tools)

    def news(self) -> tuple[Said, ...]:
        """Return what is to be said about the folder since the last time this was asked."""
        told, self._news = tuple(self._news), []
        return told

    def quarantined(self) -> frozenset[str]:
        """Return the names under which something was put away and no tool has been published since."""
        # Asked first, because it is what puts things away.
        tools = self.loaded()
        return frozenset({name.split(".")[0] for name in _names(self._files.root / QUARANTINE)} - tools.keys())

    def guarded(self, name: str, now: float) -> bool:
        """Whether code of *name* was written less than 90 seconds from *now*, in seconds since the epoch (T101).

        From, and not before: a time that lies ahead is that of a clock set back, and must not guard for hours.
        """
        try:
            written = (self._files.root / DYNAMIC / f"{name}.py").stat().st_mtime
        except FileNotFoundError:
            return False
        return abs(now - written) < synthesis.GUARD_SECONDS

    def publish(self, tool: Tool) -> bool:
        """Publish *tool*, the code first and then its spec (C13), so that a spec never stands without code.

        Returns False and does nothing where the name is guarded: somebody else was faster (T101).
        """
        with self._files.hold():
            if self.guarded(tool.name, tool.activated_at):
                return False
            signature = _signature(tool, self._key_made())
            path, spare = f"{DYNAMIC}/{tool.name}", f"{REPLACED}/{tool.name}.py"
            if (before := _text(self._files.root / f"{path}.py")) is not None:
                self._files.write_bytes(spare, before.encode())
            self._files.write_bytes(f"{path}.py", tool.code.encode())
            # The time of the file is that of the deployment, also where time is given and not the machine's.
            os.utime(self._files.root / f"{path}.py", (tool.activated_at, tool.activated_at))
            self._files.write_bytes(f"{path}.json", json.dumps(synthesis.spec(tool, signature), indent=1).encode())
            self._files.remove(spare)
        return True

    def retire(self, name: str) -> bool:
        """Take the tool *name* away, its files to the retired ones; returns whether there was such a tool."""
        if name not in self.loaded():
            return False
        with self._files.hold():
            # The spec first: what stops being a tool must stop being described first.
            moved = [self._move(f"{name}{suffix}", RETIRED) for suffix in (".json", ".py")]
        return all(moved)

    def _scanned(self) -> tuple[dict[str, Tool], dict[str, str]]:
        """The tools, and why each file that belongs to none is none."""
        folder, key = self._files.root / DYNAMIC, self._key()
        tools: dict[str, Tool] = {}
        strays: dict[str, str] = {}
        files = _names(folder)
        for name in dict.fromkeys(each.rpartition(".")[0] for each in files if each.endswith((".py", ".json"))):
            found = _tool(folder, name, key)
            if isinstance(found, str):
                strays |= {each: found for each in (f"{name}.json", f"{name}.py") if each in files}
            else:
                tools[name] = found
        strays |= {each: "it is no file of a tool" for each in files if not each.endswith((".py", ".json"))}
        return tools, strays

    def _mend(self) -> None:
        """Put back the code that a spec was signed with, where a killed process has replaced the code alone."""
        folder, key = self._files.root / DYNAMIC, self._key()
        for name in _names(self._files.root / REPLACED):
            spare, stem = self._files.root / REPLACED / name, name.removesuffix(".py")
            before, described = _text(spare), _text(folder / f"{stem}.json")
            if before is not None and not isinstance(_made_of(stem, before, described, key), str):
                self._files.write_bytes(f"{DYNAMIC}/{name}", before.encode())
            spare.unlink(missing_ok=True)

    def _put_away(self, name: str, why: str) -> None:
        if name.startswith(".") and name.endswith(".tmp"):
            # Left by a process that was killed while it wrote; under the lock it can be nobody's any more.
            (self._files.root / DYNAMIC / name).unlink(missing_ok=True)
        elif self._move(name, QUARANTINE):
            facts = {"name": name.rpartition(".")[0][:120] or name[:120], "file": name[:120], "why": why}
            self._news.append(("capability.quarantined", facts))

    def _move(self, name: str, where: str) -> bool:
        """Move the file *name* to the folder *where*, beside all that went there before under that name."""
        folder = self._files.root / where
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stem, _, suffix = name.rpartition(".")
        target = folder / (
            f"{_short(stem)}.{os.urandom(4).hex()}.{_short(suffix)}"
            if stem
            else f"{_short(name)}.{os.urandom(4).hex()}"
        )
        try:
            (self._files.root / DYNAMIC / name).rename(target)
        except FileNotFoundError:
            return False
        return True

    def _look(self) -> Look:
        found = []
        for name in [KEY, *(f"{DYNAMIC}/{each}" for each in _names(self._files.root / DYNAMIC))]:
            try:
                facts = (self._files.root / name).lstat()
            except FileNotFoundError:
                continue
            found.append((name, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns))
        return tuple(found)

    def _key(self) -> bytes | None:
        try:
            return (self._files.root / KEY).read_bytes() or None
        except FileNotFoundError:
            return None

    def _key_made(self) -> bytes:
        if (key := self._key()) is None:
            key = os.urandom(32).hex().encode()
            self._files.write_bytes(KEY, key)
        return key


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are wanted, in one call
    except FileNotFoundError:
        return []


def _short(name: str) -> str:
    # In bytes, which is what a file system counts; something must be left for what is added.
    return os.fsdecode(os.fsencode(name)[:100])


def _tool(folder: Path, name: str, key: bytes | None) -> Tool | str:
    """The tool *name* in *folder*, or why there is none."""
    return _made_of(name, _text(folder / f"{name}.py"), _text(folder / f"{name}.json"), key)


def _made_of(name: str, code: str | None, described: str | None, key: bytes | None) -> Tool | str:
    if code is None:
        return "ghost: no .py found"
    if described is None:
        return "code without a spec"
    try:
        spec = json.loads(described)
    except (ValueError, RecursionError):
        return "the spec is no JSON"
    tool = synthesis.from_spec(name, spec, code)
    if isinstance(tool, str):
        return tool
    import hmac  # here: it brings OpenSSL, and only an agent that has made a tool needs it

    given = str(spec.get("signature")).encode("utf-8", "backslashreplace")
    signed = key is not None and hmac.compare_digest(given, _signature(tool, key).encode())
    return tool if signed else "not made by synthesize_capability: the signature does not fit"


def _text(path: Path) -> str | None:
    """The text of a regular file of bearable size, else None."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # none, or a link: nothing that was published is one
        return None
    try:
        data = _read(handle, _MAX_FILE + 1) if stat.S_ISREG(os.fstat(handle).st_mode) else None
    finally:
        os.close(handle)
    try:
        return data.decode() if data is not None and len(data) <= _MAX_FILE else None
    except UnicodeDecodeError:
        return None


def _read(handle: int, limit: int) -> bytes:
    data = b""
    while len(data) < limit and (more := os.read(handle, limit - len(data))):
        data += more
    return data


def _signature(tool: Tool, key: bytes) -> str:
    import hmac

    return hmac.new(key, synthesis.sealed(tool), "sha256").hexdigest()
