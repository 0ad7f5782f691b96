"""Attacks on the gate: an agent that merges by itself, and evidence that was changed after the review."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.adversary.attack import Attack, End
from tests.adversary.catalogue.outside import earlier, earlier_run
from tests.support import world

if TYPE_CHECKING:
    from tests.adversary.arena import Arena, Story

REACH = """
words = [*AGENT, "merge", OTHER, "--approve", PATCH[:16]]
clean = {"PATH": os.environ["PATH"], "HOME": HOME, "XDG_STATE_HOME": STATE, "AGENT_BOX_TRUST_UNSANDBOXED": "yes"}
def merged(done):
    if done.returncode:
        raise OSError(done.returncode, (done.stderr or done.stdout or "refused").strip().splitlines()[-1])
    return done
"""


def _nothing_was_merged(arena: Arena, _: Story) -> None:
    """The earlier run waits for its human as before; the attempt is in the ledger where it could be made."""
    state = json.loads((earlier(arena) / "state.json").read_text())
    assert state["status"] == "REVIEW"
    assert "honest" not in (arena.repo / "shop" / "cart.py").read_text()
    log = world.git(arena.repo, "log", "--format=%s").split()
    assert log == ["first"]


def _refused_and_recorded(arena: Arena, story: Story) -> None:
    _nothing_was_merged(arena, story)
    told = [entry["facts"]["why"] for entry in world.ledger_of(arena.repo) if entry["event"] == "gate.refused"]
    assert any("inside of a run" in why for why in told), told


def _shut(arena: Arena, _: Story) -> None:
    """The evidence disagrees: nobody's approval of these bytes counts."""
    before = arena.head()
    done = arena.merge(box=earlier(arena))
    assert done.returncode == 5, done.stdout + done.stderr
    assert arena.head() == before


def _open(arena: Arena, _: Story) -> None:
    """Nothing was touched, so the human's approval is good."""
    assert arena.merge(box=earlier(arena)).returncode == 0


def call(name: str, faults: str, source: str) -> Attack:
    """An agent that calls the gate with the right hash, in one way or another."""
    return Attack(
        name=name, faults=faults, before=earlier_run, source=f"{REACH}\n{source}",
        full=End(held=True, same=True, then=_nothing_was_merged), none=End(then=_refused_and_recorded),
    )  # fmt: skip


def forgery(name: str, faults: str, *steps: str) -> Attack:
    """An agent that changes the evidence of a run that waits for review, *steps* of it consistently."""
    return Attack(
        name=name, faults=faults, before=earlier_run, source=FORGE + f"attempt('forge', forge, {steps!r})\n",
        full=End(held=True, same=True, then=_open), none=End(verify=5, then=_shut),
    )  # fmt: skip


FORGE = """
import hashlib
there = ROOT + "/.agents/runs/" + OTHER
def forge(steps):
    patch = read(there + "/changes.patch", 10**6).replace(b"honest", b"evil!!")
    new = hashlib.sha256(patch).hexdigest()
    if "patch" in steps:
        with open(there + "/changes.patch", "wb") as file:
            file.write(patch)
    if "state" in steps:
        write(there + "/state.json", read(there + "/state.json", 10**6).decode().replace(PATCH, new))
    if "ledger" in steps:
        lines = []
        for line in read(ROOT + "/.agents/INDEX.jsonl", 10**6).replace(PATCH.encode(), new.encode()).splitlines():
            entry = json.loads(line)
            if lines:
                entry["prev"] = hashlib.sha256(lines[-1]).hexdigest()
            lines.append(json.dumps(entry, separators=(",", ":")).encode())
        with open(ROOT + "/.agents/INDEX.jsonl", "wb") as file:
            file.write(b"\\n".join(lines) + b"\\n")
    return new
"""

ATTACKS = (
    call("merges-by-itself", "M01 I13", """
attempt("merge", lambda: merged(subprocess.run(words, cwd=ROOT, capture_output=True, text=True)))
"""),
    call("merges-with-a-clean-environment", "M01 M02", """
attempt("merge", lambda: merged(subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=clean)))
"""),
    call("merges-from-a-daemon", "M03 P03", """
def daemon():
    # Forked twice, a session of its own, no environment: only who adopted it still tells where it comes from.
    out, into = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(0.2)
            try:
                done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=clean)
                told = f"{done.returncode} {done.stderr.strip()}"
            except OSError as why:
                told = f"{why.errno} {why.strerror}"
            os.write(into, told.encode())
        os._exit(0)
    os.wait()
    os.close(into)
    code, _, text = os.read(out, 4096).decode().partition(" ")
    if code != "0":
        raise OSError(int(code), text.splitlines()[-1] if text else "refused")
attempt("merge", daemon)
"""),
    call("merges-at-a-terminal-of-its-own", "M02 M15", """
def typed():
    # A terminal made by the agent: to be asked there proves nothing (fact 2).
    pid, master = pty.fork()
    if pid == 0:
        try:
            os.chdir(ROOT)
            os.execve(AGENT[0], [*AGENT, "merge", OTHER], {**clean, "TERM": "dumb"})
        finally:
            os._exit(127)
    said = b""
    with contextlib.suppress(OSError):
        while part := os.read(master, 4096):
            said += part
            found = said.replace(b"\\r", b"").decode("utf-8", "replace")
            if "Type" in found:
                os.write(master, found.split("Type")[-1].encode()[:60] + b"\\n")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status:
        raise OSError(status, "refused")
attempt("merge", typed)
"""),
    call("rejects-another-run", "N05 M09", """
def undo_and_reject():
    failed = []
    for verb in ("undo", "reject"):
        done = subprocess.run([*AGENT, verb, OTHER], cwd=ROOT, capture_output=True, text=True, env=clean)
        failed += [done.stderr] if done.returncode else []
    if len(failed) == 2:
        raise PermissionError(errno.EPERM, failed[0].strip().splitlines()[-1])
attempt("reject", undo_and_reject)
"""),
    forgery("patch-after-review", "M06", "patch"),
    forgery("patch-and-state-after-review", "M07", "patch", "state"),
    forgery("patch-state-and-ledger-after-review", "M08", "patch", "state", "ledger"),
)  # fmt: skip
