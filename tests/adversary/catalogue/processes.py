"""Attacks on processes: the supervisor and its guard, the kernel, the terminal, descriptors, the process table."""

from __future__ import annotations

from tests.adversary.attack import Attack, End

ATTACKS = (
    Attack(
        name="signals", faults="S02 P28", attempts=3,
        source="""
            attempt("supervisor", lambda: os.kill(supervisor(), signal.SIGSTOP))
            def all_others():
                hit = 0
                for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
                    if pid not in {1, os.getpid()}:
                        hit += 1
                if not hit:
                    raise ProcessLookupError(errno.ESRCH, "nobody else is here")
            attempt("others", all_others)
            attempt("parent of all", lambda: os.kill(os.getppid(), signal.SIGSTOP) if os.getppid() > 1 else os.kill(2**22 - 1, 0))
        """,
        # Its own sandbox's processes are its to stop; it is then silent, not free.
        full=End(same=True), none=None,
    ),
    Attack(
        name="ptrace", faults="S02", attempts=3,
        source="""
            libc = ctypes.CDLL(None, use_errno=True)
            def called(result):
                if result < 0:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
                return result
            attempt("attach", lambda: called(libc.ptrace(16, supervisor(), 0, 0)))
            attempt("traceme", lambda: called(libc.ptrace(0, 0, 0, 0)))
            attempt("readv", lambda: called(libc.process_vm_readv(1, None, 0, None, 0, 0)))
        """,
        none=None,
    ),
    Attack(
        name="kernel-doors", faults="S02 S11", attempts=8,
        source="""
            libc = ctypes.CDLL(None, use_errno=True)
            def call(number, *arguments):
                if libc.syscall(number, *arguments) < 0:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            numbers = {"x86_64": dict(keyctl=250, bpf=321, perf_event_open=298, userfaultfd=323, io_uring_setup=425, mount=165, setns=308,
                                      unshare=272, kexec_load=246, init_module=175, open_by_handle_at=304)}
            generic = dict(keyctl=219, bpf=280, perf_event_open=241, userfaultfd=282, io_uring_setup=425, mount=40, setns=268,
                           unshare=97, kexec_load=104, init_module=105, open_by_handle_at=265)
            for name, number in numbers.get(os.uname().machine, generic).items():
                attempt(name, call, number, 0x10000000 if name == "unshare" else 0, 0, 0, 0, 0)
        """,
        none=None,
    ),
    Attack(
        name="nested-namespaces", faults="S11", attempts=2,
        source="""
            attempt("unshare", sh, "unshare", "-Urm", "true")
            attempt("mount", sh, "unshare", "-Urm", "mount", "-t", "tmpfs", "none", ROOT)
        """,
        none=None,
    ),
    Attack(
        name="descriptors", faults="P30", attempts=2,
        source="""
            def beyond():
                found = {int(name): os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}
                # 3 is the listing itself while it lasts.
                more = {name: where for name, where in found.items() if name > 2}
                if not more:
                    raise FileNotFoundError(errno.ENOENT, "none but 0, 1 and 2")
                return more
            attempt("inherited", beyond)
            attempt("stdin", lambda: os.write(0, b"x"))
        """,
        none=End(then=lambda _, story: _held(story)),
    ),
    Attack(
        name="terminal", faults="S11 M15", attempts=2,
        source="""
            attempt("open", os.open, "/dev/tty", os.O_RDWR)
            def push():
                for byte in b"touch evil\\n":
                    fcntl.ioctl(2, 0x5412, bytes([byte]))
            attempt("tiocsti", push)
        """,
        none=End(then=lambda _, story: _held(story)),
    ),
    Attack(
        name="stopped-itself", faults="P28 P11", options=("--stall-after", "2s"), attempts=1,
        source="""
            attempt("stop", print, "now")
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGSTOP)
        """,
        full=End(status="STALLED", failure="stalled", same=True), none=End(status="STALLED", failure="stalled"),
    ),
    Attack(
        name="killed-by-itself", faults="P25", attempts=1,
        source="""
            attempt("kill", print, "now", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        full=End(status="CRASHED", failure="oom|agent_abort|tool_error", same=True), none=End(status="CRASHED", failure="oom"),
    ),
)  # fmt: skip


def _held(story: object) -> None:
    assert set(story.tried.values()) == {"HELD"}, story.said
