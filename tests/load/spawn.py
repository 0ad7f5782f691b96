"""Runs one program and says what it and all it waited for have cost; small itself, so that a peak of memory is theirs.

    python -IS tests/load/spawn.py OUTPUT PROGRAM [ARGUMENT ...]

What the program prints goes into the file OUTPUT; the account is printed as JSON: exit code, wall and processor time in
seconds, the peak of its largest process in bytes, and the bytes that were read.
"""

from __future__ import annotations

import json
import os
import sys
import time


def main(out: str, *argv: str) -> None:
    """Run *argv*, its output into the new file *out*."""
    file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    quiet = os.open(os.devnull, os.O_RDONLY)
    actions = [(os.POSIX_SPAWN_DUP2, have, want) for want, have in enumerate((quiet, file, file))]
    before, began = _read(), time.perf_counter()
    pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    account = {
        "wall": time.perf_counter() - began,
        "code": os.waitstatus_to_exitcode(status),
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak": usage.ru_maxrss * 1024,
        "read": _read() - before,
    }
    print(json.dumps(account))


def _read() -> int:
    """Bytes that this process and those it has waited for have read, from a cache or from elsewhere."""
    with open("/proc/self/io", encoding="ascii") as file:  # noqa: PTH123 - pathlib would be most of what this loads
        return int(file.readline().split()[1])


if __name__ == "__main__":
    main(*sys.argv[1:])
