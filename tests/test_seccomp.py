"""The filter of system calls: interpreted here as the kernel does it, and loaded into real processes."""

from __future__ import annotations

import ctypes
import errno
import json
import platform
import struct
import subprocess
import sys

import pytest

from agents import seccomp
from tests.support.needs import lacking

MACHINES = sorted(seccomp.MACHINES)
EPERM = 0x00050000 | errno.EPERM
ENOSYS = 0x00050000 | errno.ENOSYS
X32 = 0x40000000
NEWUSER, NEWNS, NEWNET, SIGCHLD, VM = 0x10000000, 0x20000, 0x40000000, 17, 0x100


def verdict(program: bytes, audit: int, number: int, *arguments: int) -> int:
    """What *program* says of a call: classic BPF, the instructions that the assembler knows."""
    words = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<IIQ6Q", number, audit, 0, *(word & 0xFFFFFFFFFFFFFFFF for word in words))
    code = [struct.unpack_from("=HBBI", program, place) for place in range(0, len(program), 8)]
    place = accumulator = 0
    while True:
        kind, yes, no, value = code[place]
        place += 1
        if kind == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif kind == 0x06:
            return value
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[kind]
            place += yes if holds else no


def judge(
    machine: str, call: str | int, *arguments: int, nested: bool = False, sockets: bool = True, audit: int | None = None
) -> int:
    kind = seccomp.MACHINES[machine]
    number = getattr(kind, call) if isinstance(call, str) else call
    program = seccomp.program(machine, nested=nested, sockets=sockets)
    assert program is not None
    return verdict(program, kind.audit if audit is None else audit, number, *arguments)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("nested", [False, True])
def test_every_call_of_the_table_is_refused_and_no_other(machine: str, nested: bool) -> None:
    """T147: the deny list, number by number; what has arguments to look at is judged below."""
    refused = set(seccomp.denied(machine, nested=nested).values())
    looked_at = {getattr(seccomp.MACHINES[machine], name) for name in ("clone3", "personality")}
    assert not refused & looked_at
    for number in set(range(700)) - looked_at:
        assert judge(machine, number, nested=nested) == (EPERM if number in refused else seccomp.ALLOW), number


@pytest.mark.parametrize("machine", MACHINES)
def test_sandboxes_are_for_those_who_may_nest(machine: str) -> None:
    """Hollow walls its children in by itself: mounts and namespaces, and nothing else, are left to it."""
    more = seccomp.denied(machine).keys() - seccomp.denied(machine, nested=True).keys()
    assert more >= {"mount", "umount2", "unshare", "setns", "pivot_root", "move_mount", "open_tree"}
    assert seccomp.denied(machine, nested=True).keys() >= {
        "ptrace",
        "bpf",
        "io_uring_setup",
        "keyctl",
        "kexec_load",
        "init_module",
    }


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "expected"),
    [
        ("clone", (SIGCHLD,), seccomp.ALLOW),
        ("clone", (VM | SIGCHLD,), seccomp.ALLOW),
        ("clone", (NEWUSER | SIGCHLD,), EPERM),
        ("clone", (NEWNS,), EPERM),
        ("clone", (NEWNET | VM,), EPERM),
        ("clone", (NEWUSER << 32,), seccomp.ALLOW),
        ("clone3", (0, 88), ENOSYS),
        ("ioctl", (0, 0x5401), seccomp.ALLOW),
        ("ioctl", (0, 0x5412), EPERM),
        ("ioctl", (0, 0x541C), EPERM),
        ("ioctl", (0, 0x5412 | 1 << 32), EPERM),
        ("personality", (0xFFFFFFFF,), seccomp.ALLOW),
        ("personality", (0,), seccomp.ALLOW),
        ("personality", (0x20008,), seccomp.ALLOW),
        ("personality", (0x0040000,), EPERM),
        ("personality", (0x0400000,), EPERM),
        ("socket", (2, 1), seccomp.ALLOW),
    ],
)
def test_calls_are_judged_by_what_the_kernel_reads_of_their_arguments(
    machine: str, call: str, arguments: tuple[int, ...], expected: int
) -> None:
    """The upper half of an argument that the kernel reads as 32 bits must not get a call past the filter."""
    assert judge(machine, call, *arguments) == expected


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("family", "expected"), [(1, seccomp.ALLOW), (2, EPERM), (10, EPERM), (16, EPERM), (17, EPERM), (0, EPERM)]
)
def test_without_a_network_there_are_unix_sockets_alone(machine: str, family: int, expected: int) -> None:
    assert judge(machine, "socket", family, 1, sockets=False) == expected


@pytest.mark.parametrize("machine", MACHINES)
def test_namespaces_by_clone_are_for_those_who_may_nest(machine: str) -> None:
    assert judge(machine, "clone", NEWUSER | SIGCHLD, nested=True) == seccomp.ALLOW
    assert judge(machine, "clone3", nested=True) == ENOSYS


def test_the_other_way_of_calling_is_shut() -> None:
    """A second table of numbers would be a second door: x32 is refused, 32-bit calls end the process."""
    assert judge("x86_64", 0 | X32) == EPERM
    assert judge("x86_64", 520 | X32) == EPERM
    assert judge("aarch64", 0 | X32) == seccomp.ALLOW
    for machine in MACHINES:
        assert judge(machine, 0, audit=0x40000003) == seccomp.KILL


def test_a_machine_without_a_table_has_no_filter() -> None:
    assert seccomp.program("vax") is None


@pytest.mark.parametrize("machine", MACHINES)
def test_it_is_of_a_form_that_the_kernel_takes(machine: str) -> None:
    """Whole instructions, at most 4096, every jump to an instruction behind it, a verdict at the end."""
    for nested in (False, True):
        program = seccomp.program(machine, nested=nested, sockets=False)
        assert program is not None
        code = [struct.unpack_from("=HBBI", program, place) for place in range(0, len(program), 8)]
        assert len(program) % 8 == 0
        assert len(code) <= 4096
        assert code[-1][0] == 0x06
        for place, (kind, yes, no, _) in enumerate(code):
            assert kind in {0x06, 0x15, 0x20, 0x35, 0x45}
            assert place + 1 + max(yes, no) < len(code) or kind == 0x06


LOADED = """
import ctypes, errno, json, mmap, os, sys
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))
libc = ctypes.CDLL(None, use_errno=True)
code = bytes.fromhex(sys.argv[1])
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(code) // 8, code)), 0, 0) == 0, os.strerror(ctypes.get_errno())
found = {}
for name, number in json.loads(sys.argv[2]).items():
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), ctypes.c_long(-1), ctypes.c_long(-1), ctypes.c_long(-1), ctypes.c_long(-1))
    found[name] = [result, ctypes.get_errno()]
import subprocess, threading
subprocess.run(["/bin/true"], check=True)
thread = threading.Thread(target=print, args=("thread",), kwargs={"file": sys.stderr})
thread.start()
thread.join()
print(json.dumps(found))
"""


def test_the_kernel_takes_it_and_obeys() -> None:
    """Every refused call fails with EPERM in a real process, which can still start programs and threads."""
    machine = platform.machine()
    if machine not in seccomp.MACHINES:
        lacking(f"no table for {machine}")
    program = seccomp.program(machine)
    assert program is not None
    numbers = seccomp.denied(machine)
    done = subprocess.run(
        [sys.executable, "-IS", "-c", LOADED, program.hex(), json.dumps(numbers)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "thread\n"
    assert json.loads(done.stdout) == {name: [-1, errno.EPERM] for name in numbers}


def test_a_call_of_another_processor_ends_the_process() -> None:
    """The kernel of x86-64 also takes 32-bit calls (int 0x80), under numbers that mean something else."""
    if platform.machine() != "x86_64":
        pytest.skip("only x86-64 has another one built in")
    program = seccomp.program("x86_64")
    assert program is not None
    # mov eax, 20 (getpid of i386); int 0x80; ret
    source = LOADED.partition("found = {}")[0] + (
        "memory = mmap.mmap(-1, 4096, prot=7)\nmemory.write(bytes.fromhex('b814000000cd80c3'))\n"
        "address = ctypes.addressof(ctypes.c_char.from_buffer(memory))\nctypes.CFUNCTYPE(ctypes.c_long)(address)()\n"
    )
    done = subprocess.run([sys.executable, "-IS", "-c", source, program.hex()], capture_output=True, check=False)
    assert done.returncode == -31, done.stderr
    assert ctypes.sizeof(ctypes.c_void_p) == 8
