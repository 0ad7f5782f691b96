"""Attacks on the evidence: boxes, ledger, anchors, envelope, state, markers, pointers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.adversary.attack import BREACH, Attack, End
from tests.adversary.catalogue.outside import earlier_run, honest_patch_lands

if TYPE_CHECKING:
    from tests.adversary.arena import Arena, Story


def _no_stranger_is_merged(arena: Arena, _: Story) -> None:
    forged = arena.repo / ".agents" / "runs" / "26-01-01_0000__forged__beef"
    if forged.exists():
        assert arena.merge(box=forged).returncode == 5
    assert arena.command("merge", forged.name, "--approve", "0" * 8).returncode in {2, 5}


def _pointers_are_not_followed(arena: Arena, _: Story) -> None:
    for words in (["show", "latest"], ["logs", "last-review"], ["resume", "latest"]):
        done = arena.command(*words)
        assert "canary" not in done.stdout + done.stderr


def _not_merged(arena: Arena, story: Story) -> None:
    assert story.status != "MERGED"
    assert arena.command("merge", story.box.name, "--approve", "0" * 8).returncode in {2, 5}


def _still_without_a_wall(arena: Arena, story: Story) -> None:
    """Fact 1: what had no wall is not merged by a word, whatever its state says of itself."""
    before = arena.head()
    done = arena.merge(box=story.box, env={"AGENT_BOX_TRUST_UNSANDBOXED": "no"})
    assert done.returncode in {2, 5}, done.stdout
    assert arena.head() == before


ATTACKS = (
    Attack(
        name="another-box", faults="M06 M07", attempts=3, before=earlier_run,
        source="""
            there = ROOT + "/.agents/runs/" + OTHER
            attempt("patch", write, there + "/changes.patch", "# evil\\n", "a")
            attempt("report", write, there + "/report.md", "Looks good to me.\\n")
            def promote():
                text = read(there + "/state.json", 10**6).decode()
                write(there + "/state.json", text.replace('"REVIEW"', '"MERGED"'))
            attempt("state", promote)
        """,
        full=End(held=True, same=True, then=honest_patch_lands), none=End(verify=5),
    ),
    Attack(
        name="ledger-append", faults="M05 M08", attempts=1,
        source="""
            attempt("append", write, ROOT + "/.agents/INDEX.jsonl", '{"seq": 9, "event": "run.merged"}\\n', "a")
        """,
        none=End(status="*", failure="*", verify=5),
    ),
    Attack(
        name="ledger-truncate", faults="M08", attempts=1, before=earlier_run,
        source="""
            attempt("truncate", write, ROOT + "/.agents/INDEX.jsonl", "")
        """,
        none=End(status="*", failure="*", verify=5),
    ),
    Attack(
        name="ledger-rewrite", faults="M08", attempts=1, before=earlier_run,
        source="""
            import hashlib
            def rewrite():
                lines, prev = [], None
                for line in read(ROOT + "/.agents/INDEX.jsonl", 10**6).splitlines():
                    entry = json.loads(line)
                    if lines:
                        entry["prev"] = hashlib.sha256(lines[-1]).hexdigest()
                    if entry["event"] == "run.finished":
                        entry["facts"]["evidence"]["changes.patch"] = "0" * 64
                    lines.append(json.dumps(entry, separators=(",", ":")).encode())
                with open(ROOT + "/.agents/INDEX.jsonl", "wb") as file:
                    file.write(b"\\n".join(lines) + b"\\n")
            attempt("rewrite", rewrite)
        """,
        none=End(status="*", failure="*", verify=5),
    ),
    Attack(
        name="anchors", faults="M08", attempts=2, before=earlier_run,
        source="""
            attempt("ref", sh, "git", "update-ref", "-d", "refs/agent-box/ledger")
            def forget():
                for path in pathlib.Path(STATE, "agent-box").glob("*/head.json"):
                    path.write_text("{}")
                    return
                raise FileNotFoundError(errno.ENOENT, "no head")
            attempt("head", forget)
            attempt("ledger", write, ROOT + "/.agents/INDEX.jsonl", "")
        """,
        # All witnesses and the ledger at once: nobody is left to contradict (docs/threat-model.md), so only the wall holds.
        none=None,
    ),
    Attack(
        name="own-envelope", faults="K07", attempts=1,
        source="""
            attempt("meta", write, ROOT + "/.agents/latest/meta.yaml", "# mine\\n", "a")
        """,
        none=End(status="CRASHED", failure=f"{BREACH}.*meta.yaml", verify=5),
    ),
    Attack(
        name="own-state", faults="M07", attempts=1,
        source="""
            def promote():
                path = ROOT + "/.agents/latest/state.json"
                words = json.loads(read(path, 10**6))
                write(path, json.dumps({**words, "status": "MERGED", "isolation": "full", "revision": 99}))
            attempt("state", promote)
        """,
        none=End(status="*", failure="*", verify=-1, then=_not_merged),
    ),
    Attack(
        name="own-isolation", faults="M02 M07", attempts=1,
        source="""
            write("shop/cart.py", "# edited\\n", "a")
            def pretend():
                path = ROOT + "/.agents/latest/state.json"
                words = json.loads(read(path, 10**6))
                write(path, json.dumps({**words, "isolation": "full"}))
            attempt("isolation", pretend)
        """,
        full=End(status="REVIEW", held=True, same=True), none=End(status="*", failure="*", verify=-1, then=_still_without_a_wall),
    ),
    Attack(
        name="markers", faults="N15 I12", attempts=2,
        source="""
            attempt("elsewhere", write, ROOT + "/.agents/active/beef", "../../../home")
            attempt("absolute", write, ROOT + "/.agents/active/dead", "/etc")
        """,
        none=End(),
    ),
    Attack(
        name="forged-box", faults="M05", attempts=1, before=earlier_run,
        source="""
            def forge():
                there = ROOT + "/.agents/runs/26-01-01_0000__forged__beef"
                shutil.copytree(ROOT + "/.agents/runs/" + OTHER, there)
                for name in ("state.json", "meta.yaml"):
                    write(there + "/" + name, read(there + "/" + name, 10**6).decode().replace(OTHER, "26-01-01_0000__forged__beef"))
            attempt("forge", forge)
        """,
        full=End(held=True, same=True, then=_no_stranger_is_merged), none=End(verify=5, then=_no_stranger_is_merged),
    ),
    Attack(
        name="pointers", faults="N15 N16", attempts=2,
        source="""
            def repoint(target, name):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name)
                os.makedirs(os.path.dirname(name), exist_ok=True)
                os.symlink(target, name)
                return "done"
            attempt("latest", repoint, HOME + "/.ssh", ROOT + "/.agents/latest")
            attempt("last-review", repoint, "/etc", ROOT + "/.agents/pointers/last-review")
        """,
        full=End(held=True, same=True, then=_pointers_are_not_followed), none=End(status="*", failure="*", verify=-1, then=_pointers_are_not_followed),
    ),
)  # fmt: skip
