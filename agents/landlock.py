"""The second choice of a sandbox: Landlock and a filter of system calls, put on by what then becomes the agent.

:func:`command` starts it. Its orders come on a descriptor (:func:`packed`): ``read``, ``list`` and ``write`` (paths),
``files`` and ``tcp`` (whether each of these is taken away but for that), ``scope`` (bits of the kernel's), ``filter``
(a seccomp program) and ``processes`` (how many more the user may have). Every agent waits for it to start, so it
imports next to nothing. What the running kernel's Landlock does not know yet is left out: the caller asks :func:`abi`.
"""

from __future__ import annotations

import marshal
import os
import resource
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import Any, Final

# Numbers that x86-64 and aarch64 share.
_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_PATH_BENEATH: Final = 1
_VERSION: Final = 1
_NO_NEW_PRIVS: Final = 38
_SET_SECCOMP: Final = 22
_FILTER_MODE: Final = 2
_DROP_BOUNDING: Final = 24
_CAPABILITY_VERSION: Final = 0x20080522

# Rights on files (linux/landlock.h), by what they are for here.
_OF_FILES: Final = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15  # execute, write, read, truncate, ioctl of a device
_LIST: Final = 1 << 3
_READ: Final = 1 << 0 | 1 << 2 | _LIST
_FIRST: Final = (1 << 13) - 1
_SINCE: Final = ((2, 1 << 13), (3, 1 << 14), (5, 1 << 15))
"""The version of Landlock that brought a right: refer, truncate, ioctl of a device."""
_TCP_SINCE: Final = 4
_TCP: Final = 3
SCOPE_SINCE: Final = 6
SCOPE_ABSTRACT: Final = 1
"""No abstract Unix socket of a process outside can be reached."""
SCOPE_SIGNAL: Final = 2
"""No process outside can be signalled."""
ORDERS: Final = 320
"""Descriptor on which the orders are handed over."""
_START: Final = (
    "import sys; sys.path.append(sys.argv[1].rpartition('/')[0]); import landlock; landlock.main(sys.argv[2:])"
)


def command(orders: int) -> tuple[str, ...]:
    """What puts the walls on and becomes the program whose words follow; *orders* is the descriptor to read."""
    # A script would be compiled anew for every agent: imported, it is not.
    return (sys.executable, "-IS", "-c", _START, __file__, str(orders))


def packed(orders: Mapping[str, Any]) -> bytes:
    """The bytes of *orders* as :func:`main` reads them, which is run by the same Python as this one."""
    return marshal.dumps(dict(orders))


def abi() -> int:
    """The version of Landlock that this kernel has switched on; 0 for none."""
    try:
        # Asked before every run with a network, so without the package `ctypes`, as the guard does it.
        import _ctypes
    except ImportError:
        return max(0, _system(_CREATE_RULESET, None, 0, _VERSION))
    function = _ctypes.dlsym(_ctypes.dlopen(None, 0), "syscall")  # type: ignore[arg-type]
    return max(0, int(_ctypes.call_function(function, (_CREATE_RULESET, None, 0, _VERSION))))


def _system(number: int, *arguments: Any) -> int:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(ctypes.c_long(number), *arguments))


def _must(result: int, what: str) -> int:
    if result < 0:
        import ctypes

        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def spread(path: Path, hidden: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Rules that make *path* readable but for what is *hidden* in it: (``read`` or ``list``, path) pairs.

    Landlock knows no exceptions, so the siblings of what is hidden are allowed one by one; links among them are left
    out, for a rule holds for what it leads to. The names in such a folder can still be listed, also hidden ones.
    """
    inside = {each for each in hidden if each.is_relative_to(path)}
    if path in inside:
        return
    if not inside:
        yield "read", path
        return
    yield "list", path
    for child in sorted(path.iterdir()):
        if not child.is_symlink():
            yield from spread(child, inside)


def confine(orders: dict[str, Any]) -> None:
    """Put the walls of *orders* around this process; raises OSError where the kernel refuses one of them."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    _must(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if orders.get("files"):
        _drop_capabilities(libc)
    _limit_processes(orders.get("processes"))
    version = abi()
    rights = _rights(version) if orders.get("files") else 0
    tcp = _TCP if orders.get("tcp") and version >= _TCP_SINCE else 0
    scope = orders.get("scope", 0) if version >= SCOPE_SINCE else 0
    if rights or tcp or scope:
        _restrict(orders, (rights, tcp, scope), version)
    if orders.get("filter"):
        _filter(libc, orders["filter"])


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Make root an ordinary user with root's files: a right over the machine goes past any wall around files."""
    capability = 0
    while libc.prctl(_DROP_BOUNDING, capability, 0, 0, 0) == 0:
        capability += 1
    header, nothing = struct.pack("=Ii", _CAPABILITY_VERSION, 0), struct.pack("=6I", *[0] * 6)
    _must(libc.capset(header, nothing), "capabilities")


def _rights(version: int) -> int:
    return _FIRST | sum(right for since, right in _SINCE if version >= since)


def _restrict(orders: dict[str, Any], handled: tuple[int, int, int], version: int) -> None:
    import ctypes

    # An older kernel is given the shorter structure that it knows.
    size = 24 if version >= SCOPE_SINCE else 16 if version >= _TCP_SINCE else 8
    attributes = struct.pack("=QQQ", *handled)[:size]
    ruleset = _must(_system(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0), "Landlock")
    for kind, rights in (("list", _LIST), ("read", _READ), ("write", handled[0])):
        for path in orders.get(kind, ()) if handled[0] else ():
            _allow(ruleset, path, rights & handled[0])
    _must(_system(_RESTRICT_SELF, ruleset, 0), "Landlock")
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        # What is not there, or not for this user, needs no permission.
        return
    try:
        wanted = rights if os.path.isdir(f"/proc/self/fd/{handle}") else rights & _OF_FILES  # noqa: PTH112 - pathlib is felt here
        rule = struct.pack("=Qi", wanted, handle)
        if wanted:
            _must(_system(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0), path)
    finally:
        os.close(handle)


def _filter(libc: ctypes.CDLL, code: bytes) -> None:
    import ctypes

    instructions = ctypes.create_string_buffer(code)
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(instructions))
    _must(libc.prctl(_SET_SECCOMP, _FILTER_MODE, program, 0, 0), "seccomp")


def _limit_processes(more: int | None) -> None:
    """Let the user have *more* processes than now: outside of a user namespace the kernel counts all (fact 18)."""
    if more is None:
        return
    limit, hard = _threads_of(os.getuid()) + more, resource.getrlimit(resource.RLIMIT_NPROC)[1]
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


def _threads_of(user: int) -> int:
    total = 0
    for process in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - likewise
        try:
            if os.stat(f"/proc/{process}").st_uid == user:  # noqa: PTH116 - likewise
                total += len(os.listdir(f"/proc/{process}/task"))  # noqa: PTH208 - likewise
        except OSError:
            # It has ended meanwhile.
            continue
    return total


def main(arguments: list[str]) -> None:
    """Confine this process and become the program."""
    given, *argv = arguments
    with os.fdopen(int(given), "rb") as file:
        orders = marshal.load(file)  # noqa: S302 - our own bytes, see packed
    try:
        confine(orders)
        os.execvp(argv[0], argv)  # noqa: S606 - the agent is what this program runs
    except OSError as why:
        sys.exit(f"The sandbox cannot start {argv[0]}: {why}")
