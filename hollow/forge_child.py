"""What a child process runs: one synthesized tool, read from standard input, its value said on one marked line.

This file is given to the interpreter as text, so it stands alone: of the project nothing can be imported in there.
"""

from __future__ import annotations

import json
import os
import sys
import types
import warnings

# By hand, and what is needed now and then inside of functions: every step of a plan may start this, and typing alone
# would make that a third slower.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

MAX_VALUE: Final = 64 * 1024
"""Bytes of a value as JSON: more than a mind can be told, and never cut in silence (W17)."""


def main() -> None:
    """Run what standard input asks for, and leave at once, whatever the tool has left running in here."""
    order = json.loads(sys.stdin.buffer.read())
    # The pipe is kept under a number that no child inherits, and the usual ones lead nowhere: what a tool prints can
    # neither be taken for its value nor fill the pipe.
    out = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for usual in (0, 1, 2):
        os.dup2(nowhere, usual)
    mark = order.pop("mark")
    line = f"{mark}{_said(order)}\n".encode()
    while line:
        line = line[os.write(out, line) :]
    os._exit(0)


def _said(order: dict[str, Any]) -> str:
    try:
        answer = _answer(order)
        said = json.dumps(answer, allow_nan=False, default=str)
        if len(said) <= MAX_VALUE:
            return said
        why = f"it returned more than {MAX_VALUE} bytes; return less, or write a file"
        return json.dumps({"trouble": "failed", "error": why, "kind": ""})
    except BaseException as why:  # noqa: BLE001 - whatever a stranger's code raises is its answer, SystemExit too
        import traceback

        last = traceback.format_exception_only(why)[-1].strip()
        return json.dumps({"trouble": "failed", "error": last[:1000], "kind": type(why).__name__})


def _answer(order: dict[str, Any]) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    module = types.ModuleType(order["name"])
    # Known to the import system, or dataclasses and pickle could not find what is defined in it.
    sys.modules[order["name"]] = module
    exec(compile(order["code"], f"{order['name']}.py", "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - that is its purpose, and it is sandboxed
    tool = getattr(module, order["name"])
    if order["params"] is None:
        return {"loaded": True}
    import inspect

    try:
        inspect.signature(tool).bind(**order["params"])
    except TypeError as why:
        return {"trouble": "usage", "error": str(why)}
    return {"value": tool(**order["params"])}


if __name__ == "__main__":
    main()
