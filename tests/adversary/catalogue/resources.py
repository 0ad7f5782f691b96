"""Attacks on what there is only so much of: disk, network, processes, and the network when it is off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.adversary.attack import Attack, End
from tests.adversary.catalogue.stream import both

if TYPE_CHECKING:
    from tests.adversary.arena import Arena, Story


def _left_out(arena: Arena, story: Story) -> None:
    """G12: a file above the cap is named and left out; the patch stays one that can be read."""
    assert any("big" in each for each in story.state["patch"]["findings"])
    assert (story.box / "changes.patch").stat().st_size < 10_000


def _held(_: Arena, story: Story) -> None:
    assert set(story.tried.values()) == {"HELD"}, story.said


def _scratch_is_bounded(_: Arena, story: Story) -> None:
    free = [line.split("|")[3] for line in story.said.splitlines() if line.startswith("tried|room in")]
    assert len(free) == 3
    assert all(int(each.strip("'")) <= 2 * 1024**3 for each in free)


ATTACKS = (
    Attack(
        name="sparse-giant", faults="G12 C17",
        source="""
            write("shop/cart.py", "# edited\\n", "a")
            def giant():
                with open("big", "wb") as file:
                    file.truncate(3 * 1024**3)
            attempt("truncate", giant)
        """,
        **both(End(status="REVIEW", then=_left_out)),
    ),
    Attack(
        name="larger-than-any-file", faults="C17 T05",
        source="""
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            def giant():
                with open("big", "wb") as file:
                    file.truncate(9 * 1024**3)
            attempt("truncate", giant)
            os.unlink("big")
        """,
        full=End(held=True, same=True), none=End(then=_held),
    ),
    Attack(
        name="memory-disks", faults="T05 C17", attempts=3,
        source="""
            def room(path):
                seen = os.statvfs(path)
                return seen.f_blocks * seen.f_frsize
            for path in ("/tmp", "/var/tmp", "/dev/shm"):
                attempt("room in " + path, room, path)
        """,
        full=End(same=True, then=_scratch_is_bounded), none=None,
    ),
    Attack(
        name="core-dump", faults="S12",
        source="""
            import resource
            def allow():
                resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
                if resource.getrlimit(resource.RLIMIT_CORE)[0] == 0:
                    raise PermissionError(errno.EPERM, "no core files")
            attempt("core", allow)
        """,
        # Root without a wall may raise any limit again.
        none=None,
    ),
    Attack(
        name="network-when-off", faults="S10 S11", attempts=4, options=("--network", "off"),
        source="""
            def tcp(host, port):
                with socket.create_connection((host, port), timeout=5) as line:
                    return line.recv(10)
            def udp():
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
                    line.settimeout(2)
                    line.sendto(b"x", ("127.0.0.1", UDP))
                    return line.recv(10)
            def abstract():
                with socket.socket(socket.AF_UNIX) as line:
                    line.connect("\\0" + NAME)
                    return line.recv(10)
            def by_path():
                with socket.socket(socket.AF_UNIX) as line:
                    line.connect(SOCKET)
                    return line.recv(10)
            attempt("tcp", tcp, "127.0.0.1", TCP)
            attempt("udp", udp)
            attempt("abstract", abstract)
            attempt("path", by_path)
            attempt("names", socket.getaddrinfo, "example.org", 80)
        """,
        none=None, serves=True,
    ),
    Attack(
        name="unix-sockets", faults="S11", attempts=2,
        source="""
            def talk(where):
                with socket.socket(socket.AF_UNIX) as line:
                    line.connect(where)
                    return line.recv(10)
            attempt("path", lambda: talk(SOCKET))
            attempt("abstract", lambda: talk("\\0" + NAME))
        """,
        none=None, serves=True,
    ),
)  # fmt: skip
