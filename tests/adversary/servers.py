"""Listeners of the operator's machine that an agent should not reach: TCP, UDP, and sockets with and without a path."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Known = dict[str, int | str]


@contextlib.contextmanager
def listening(folder: Path) -> Iterator[Known]:
    """Answer on four listeners as long as it lasts; gives the names by which agents know them.

    They do answer, so that an attempt which fails has been kept from them.
    """
    with contextlib.ExitStack() as undo:
        kinds = {
            "TCP": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "UDP": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            "NAME": (socket.AF_UNIX, socket.SOCK_STREAM, f"\0{uuid.uuid4().hex}"),
            "SOCKET": (socket.AF_UNIX, socket.SOCK_STREAM, str(folder / "s")),
        }
        open_ = {}
        for name, (family, kind, address) in kinds.items():
            line = undo.enter_context(socket.socket(family, kind))
            line.bind(address)
            if kind == socket.SOCK_STREAM:
                line.listen()
            open_[name] = line
        undo.enter_context(_answering(list(open_.values())))
        with socket.create_connection(open_["TCP"].getsockname(), timeout=10) as line:
            assert line.recv(10) == b"hello"
        yield {name: _known(line) for name, line in open_.items()}


def _known(line: socket.socket) -> int | str:
    """Port, path, or abstract name without its NUL."""
    address = line.getsockname()
    if isinstance(address, tuple):
        return int(address[1])
    return address.decode().removeprefix("\0") if isinstance(address, bytes) else str(address)


@contextlib.contextmanager
def _answering(lines: list[socket.socket]) -> Iterator[None]:
    wake, stop = socket.socketpair()
    with wake, stop, selectors.DefaultSelector() as ready:
        for line in (*lines, wake):
            ready.register(line, selectors.EVENT_READ)
        thread = threading.Thread(target=_serve, args=(ready, wake))
        thread.start()
        try:
            yield
        finally:
            stop.send(b"x")
            thread.join(30)


def _serve(ready: selectors.BaseSelector, wake: socket.socket) -> None:
    while True:
        for key, _ in ready.select():
            line = key.fileobj
            assert isinstance(line, socket.socket)
            if line is wake:
                return
            if line.type == socket.SOCK_DGRAM:
                line.sendto(b"hello", line.recvfrom(100)[1])
            else:
                with line.accept()[0] as caller:
                    caller.sendall(b"hello")
