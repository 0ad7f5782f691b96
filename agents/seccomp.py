"""The system calls an agent may not make, as a seccomp filter: a table, and a small assembler for the kernel's BPF."""

from __future__ import annotations

import errno
import struct

from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000
_ERRNO: Final = 0x00050000

# Instruction classes of classic BPF that are needed here (linux/filter.h).
_LOAD: Final = 0x20
_EQUAL: Final = 0x15
_AT_LEAST: Final = 0x35
_ANY_BIT: Final = 0x45
_RETURN: Final = 0x06
# Where struct seccomp_data keeps things (linux/seccomp.h). Only the low half of an argument is looked at: the kernel
# reads these arguments as 32 bits, so what a caller puts above them must not get it past the filter.
_NUMBER: Final = 0
_MACHINE: Final = 4
_ARGUMENTS: Final = 16

_X32: Final = 0x40000000
"""The bit of the second way of calling an x86-64 kernel: the same calls under other numbers."""

_NAMESPACES: Final = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET (linux/sched.h)."""
_TIOCSTI: Final = 0x5412
_TIOCLINUX: Final = 0x541C
_PLAIN_PERSONALITIES: Final = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
"""Linux, 32-bit Linux, either with the old uname, and the question; others switch protections of memory off."""
_AF_UNIX: Final = 1

# Numbers of system calls from the kernel's tables: x86-64, then the generic table that aarch64 has. None: not there.
_DENIED: Final[Mapping[str, tuple[int | None, int | None]]] = {
    # Other processes' memory and registers (fact 1 of the reliability notes: one attach froze a supervisor).
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    # Large parts of the kernel that builds and tests do not need, with a long history of faults.
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    # The keyring is shared by all processes of a user, whatever their namespaces.
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # The machine as a whole.
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89),
    "quotactl": (179, 60), "syslog": (103, 116), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "iopl": (172, None), "ioperm": (173, None), "lookup_dcookie": (212, 18), "nfsservctl": (180, 42),
    # Opens any file of a file system by its number, past every folder above it.
    "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
}  # fmt: skip
_OF_SANDBOXES: Final[Mapping[str, tuple[int | None, int | None]]] = {
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "setns": (308, 268),
    "unshare": (272, 97), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
}  # fmt: skip
"""What only somebody needs who builds a sandbox of his own."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A kind of processor as the kernel knows it."""

    audit: int
    """Its AUDIT_ARCH number (linux/audit.h)."""
    column: int
    """Its column in the tables of calls."""
    clone: int
    clone3: int
    ioctl: int
    personality: int
    socket: int
    x32: bool = False


MACHINES: Final[Mapping[str, Machine]] = {
    "x86_64": Machine(0xC000003E, 0, clone=56, clone3=435, ioctl=16, personality=135, socket=41, x32=True),
    "aarch64": Machine(0xC00000B7, 1, clone=220, clone3=435, ioctl=29, personality=92, socket=198),
}
"""Processors by the name that ``platform.machine()`` has for them."""

_Instruction = tuple[int, int, int, int]


def denied(machine: str, *, nested: bool = False) -> Mapping[str, int]:
    """Names and numbers of the calls that are refused whatever their arguments; *nested* as in :func:`program`."""
    column = MACHINES[machine].column
    table = _DENIED if nested else {**_DENIED, **_OF_SANDBOXES}
    return {name: number for name, numbers in table.items() if (number := numbers[column]) is not None}


def program(machine: str, *, nested: bool = False, sockets: bool = True) -> bytes | None:
    """The filter for *machine* as the kernel loads it; None for a machine that has no table here.

    *nested* leaves what builds sandboxes for children of its own: namespaces and mounts. Without *sockets* a process
    gets sockets of the Unix family alone: that is the whole network where no namespace can take it away (attack table,
    UDP). Refused calls fail with EPERM; ``clone3``, whose flags a filter cannot see, with ENOSYS, on which the C
    libraries fall back to ``clone``. A call in the manner of another processor ends the process.
    """
    kind = MACHINES.get(machine)
    if kind is None:
        return None
    refuse = _ERRNO | errno.EPERM
    code: list[_Instruction] = [_load(_MACHINE), (_EQUAL, 1, 0, kind.audit), _give(KILL), _load(_NUMBER)]
    if kind.x32:
        code += [(_AT_LEAST, 0, 1, _X32), _give(refuse)]
    code += _when(kind.clone3, [_give(_ERRNO | errno.ENOSYS)])
    for number in sorted(denied(machine, nested=nested).values()):
        code += _when(number, [_give(refuse)])
    if not nested:
        code += _when(kind.clone, [_load(_argument(0)), (_ANY_BIT, 0, 1, _NAMESPACES), _give(refuse), _give(ALLOW)])
    code += _when(kind.ioctl, _unless_one_of(1, (_TIOCSTI, _TIOCLINUX), found=refuse, otherwise=ALLOW))
    code += _when(kind.personality, _unless_one_of(0, _PLAIN_PERSONALITIES, found=ALLOW, otherwise=refuse))
    if not sockets:
        code += _when(kind.socket, _unless_one_of(0, (_AF_UNIX,), found=ALLOW, otherwise=refuse))
    code.append(_give(ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _load(offset: int) -> _Instruction:
    return (_LOAD, 0, 0, offset)


def _give(verdict: int) -> _Instruction:
    return (_RETURN, 0, 0, verdict)


def _argument(index: int) -> int:
    # Both machines keep the low half of an argument first.
    return _ARGUMENTS + 8 * index


def _when(number: int, then: Sequence[_Instruction]) -> list[_Instruction]:
    """Do *then*, which must end in a verdict, for the call *number*; go on behind it for any other."""
    return [(_EQUAL, 0, len(then), number), *then]


def _unless_one_of(index: int, values: Sequence[int], *, found: int, otherwise: int) -> list[_Instruction]:
    """The verdict *found* where argument *index* is one of *values*, else *otherwise*."""
    last = len(values)
    tests = [(_EQUAL, last - place, 0, value) for place, value in enumerate(values)]
    return [_load(_argument(index)), *tests, _give(otherwise), _give(found)]
