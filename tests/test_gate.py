"""The gate: a human approves exactly the bytes that come in, or nothing is changed, whoever asks and whatever dies."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from agents import airlock, audit, gate, judgement, procs
from agents.errors import AgentError, OperatorError, Tampered
from agents.model import Failure, FailureKind, Status
from agents.sweep import sweep
from essentials import records
from tests.support import gates, repos
from tests.support.boxes import abandoned, ended, events, fork, together
from tests.support.gates import approved, digest, disk, make_context, planted, reviewed, snapshot, status, tree_at
from tests.support.world import PROJECT


def edit(root):
    (root / "src/app.py").write_text("print('better')\n")


def everything(root):
    """Every kind of change at once."""
    edit(root)
    (root / "src/old.py").unlink()
    (root / "docs/guide.md").rename(root / "docs/manual.md")
    (root / "folder/one.txt").unlink()
    (root / "folder").rmdir()
    (root / "folder").symlink_to("docs")
    (root / "tool").write_text("#!/bin/sh\n")
    (root / "tool").chmod(0o755)
    (root / "data.bin").write_bytes(bytes(reversed(range(256))))
    (root / "new dir").mkdir()
    (root / 'new dir/ü "quoted"\n').write_bytes(b"crlf\r\nno end")
    (root / "README.md").write_bytes(b"")


@pytest.fixture
def context(tmp_path):
    return make_context(tmp_path)


def refused(context, name, error=OperatorError, **how):
    """Why merging *name* is refused, after nothing was found changed by it."""
    before = snapshot(context)
    act = gates.merge if how.keys() & {"approve", "ask"} else approved
    with pytest.raises(error) as refusal:
        act(context, name, **how)
    assert snapshot(context) == before
    assert refusal.value.hint
    return refusal.value.message


def last(context, event):
    """Facts of the newest ledger entry of that *event*."""
    return [entry["facts"] for entry in context.journal.entries() if entry["event"] == event][-1]


class TestMerge:
    """What a good merge is."""

    def test_every_kind_of_change_comes_in_as_the_very_tree(self, context):
        """T149: the tree of the commit is the one that was verified; state, ledger, branch and checkout agree."""
        root = context.layout.root
        before = gates.head(context)
        name = reviewed(context, everything, task="tidy up: 'all' of it")
        verified = context.store.load(name).patch["tree"]
        state = approved(context, name)
        assert state.status is Status.MERGED
        assert tree_at(root) == verified == state.merge["tree"]
        assert repos.git(root, "rev-parse", "main", "main^") == f"{state.merge['commit']}\n{before}"
        assert status(root) == []
        assert repos.git(root, "diff-files", "--name-only") == ""
        message = repos.git(root, "log", "-1", "--format=%B")
        assert message.startswith("tidy up: 'all' of it\n\n")
        trailers = repos.git(root, "log", "-1", "--format=%(trailers)").splitlines()
        assert trailers == [f"Agent-Run: {name}", f"Agent-Patch: {digest(context, name)}"]

    def test_the_ledger_tells_of_it_and_all_is_in_order(self, context):
        name = reviewed(context, edit)
        state = approved(context, name)
        told = last(context, "run.merged")
        assert told["status"] == "MERGED"
        assert told["merge"]["commit"] == state.merge["commit"]
        assert told["patch"]["sha256"] == digest(context, name)
        assert audit.audit(context).flaws == ()
        assert context.store.active() == {}

    def test_the_airlock_is_gone_and_the_patch_stays(self, context):
        name = reviewed(context, edit)
        assert context.layout.tree(name).exists()
        state = approved(context, name)
        assert not context.layout.tree(name).exists()
        assert state.worktree_path is None
        assert "better" in gate.diff(context, name)

    def test_work_that_is_in_no_patch_keeps_its_airlock(self, context):
        """What was written after the export is nobody's to throw away."""
        name = reviewed(context, edit)
        (context.layout.tree(name) / "later.txt").write_text("later\n")
        assert approved(context, name).status is Status.MERGED
        assert (context.layout.tree(name) / "later.txt").exists()

    @pytest.mark.parametrize("identity", [None, ("Ada", "ada@example.org")])
    def test_the_operator_commits_where_git_knows_him(self, context, identity):
        root = context.layout.root
        if identity:
            repos.git(root, "config", "user.name", identity[0])
            repos.git(root, "config", "user.email", identity[1])
        approved(context, reviewed(context, edit))
        name, email = identity or ("Agent Box", "agent-box@localhost")
        assert repos.git(root, "log", "-1", "--format=%an|%ae|%cn|%ce") == f"{name}|{email}|{name}|{email}"

    def test_uncommitted_work_elsewhere_stays(self, context):
        """G31: staged, edited, untracked; none of it gets into the commit."""
        root = context.layout.root
        (root / "README.md").write_text("mine\n")
        repos.git(root, "add", "README.md")
        (root / "docs/guide.md").write_text("mine too\n")
        (root / "untracked").write_text("mine as well\n")
        mine = status(root)
        state = approved(context, reviewed(context, edit))
        assert status(root) == mine
        assert tree_at(root) == state.merge["tree"]

    def test_typed_words_merge(self, context):
        """M15, M16: the run's short id and the first eight of the result tree, as they are shown."""
        name = reviewed(context, edit, "c0de")
        cases = []

        def ask(case):
            cases.append(case)
            return f" {case.words} \n"

        state = gates.merge(context, name, ask=ask)
        assert cases[0].words == f"c0de {state.merge['tree'][:8]}"
        assert tree_at(context.layout.root) == state.merge["tree"]

    def test_a_moved_head_is_merged_with(self, context):
        """G28: three-way, in memory; both sides are in the result, and the commit stands on today's HEAD."""
        root = context.layout.root
        name = reviewed(context, edit)
        (root / "docs/guide.md").write_text("rewritten\n")
        repos.git(root, "commit", "--quiet", "--all", "--message", "meanwhile")
        moved = repos.git(root, "rev-parse", "HEAD")
        case = gate.examine(context, name)
        assert "moved on since" in case.summary
        state = approved(context, name)
        assert repos.git(root, "rev-parse", "HEAD^") == moved
        assert (root / "docs/guide.md").read_text() == "rewritten\n"
        assert (root / "src/app.py").read_text() == "print('better')\n"
        assert state.merge["tree"] != context.store.load(name).patch["tree"]

    def test_a_new_branch_leaves_the_checkout_alone(self, context):
        """`--branch NAME`: also where HEAD is on no branch and files are in the way."""
        root = context.layout.root
        name = reviewed(context, edit)
        repos.git(root, "switch", "--quiet", "--detach")
        (root / "src/app.py").write_text("mine\n")
        before = disk(root)
        state = approved(context, name, branch="look/at-it")
        assert state.status is Status.MERGED
        assert state.merge["branch"] is True
        assert tree_at(root, "look/at-it") == state.merge["tree"]
        assert disk(root) == before

    def test_a_repository_with_sha256(self, tmp_path):
        """G38."""
        root = tmp_path / "repo"
        repos.git(tmp_path, "init", "--quiet", "--object-format=sha256", "--initial-branch=main", str(root))
        repos.commit(root, {"src/app.py": "print('hello')\n"})
        context = gates.reopened(root)
        state = approved(context, reviewed(context, edit))
        assert len(state.merge["commit"]) == 64
        assert tree_at(root) == state.merge["tree"]

    def test_nothing_that_was_planted_runs(self, context, tmp_path):
        """G32, M18: hooks, filters, drivers, pagers, editors; the operator's own hooks do not run either."""
        canary = tmp_path / "canary"
        planted(context.layout.root, canary)

        def attributes(root):
            edit(root)
            (root / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
            (root / "x.txt").write_text("x\n")

        name = reviewed(context, attributes)
        gate.examine(context, name)
        state = approved(context, name)
        assert not canary.exists()
        assert state.merge["flags"] == ["git settings"]


class TestApproval:
    """Only a human's word for these very bytes."""

    def test_no_terminal_and_no_hash(self, context):
        """T149: M04, refused."""
        assert "terminal" in refused(context, reviewed(context, edit), approve=None)

    @pytest.mark.parametrize("length", [0, 1, 7])
    def test_too_short_a_hash(self, context, length):
        """T149: fewer than eight digits are none."""
        name = reviewed(context, edit)
        refused(context, name, approve=digest(context, name)[:length])

    @pytest.mark.parametrize("given", ["0" * 8, "f" * 64, "yes", "latest"])
    def test_a_wrong_hash(self, context, given):
        """T149: refused, and the ledger knows of it."""
        refused(context, reviewed(context, edit), approve=given)
        assert last(context, "gate.refused")["code"] == 2

    def test_the_hash_of_another_run(self, context):
        """M11: an approval is for one patch."""
        one = reviewed(context, edit, "aaaa")
        other = reviewed(context, lambda root: (root / "README.md").write_text("other\n"), "bbbb")
        assert "another patch" in refused(context, one, approve=digest(context, other))
        assert "another patch" in refused(context, other, approve=digest(context, one))

    @pytest.mark.parametrize("typed", ["", "y", "yes", "a1b2", "a1b2 00000000"])
    def test_other_words(self, context, typed):
        """M15: nothing that a diff could have talked the operator into."""
        refused(context, reviewed(context, edit), ask=lambda _: typed)

    def test_what_is_shown_cannot_drive_the_terminal(self, context):
        """M15: escapes and reordering in content, names and findings."""

        def spoof(root):
            (root / "src/app.py").write_text("x = 1  # \x1b[2J\u202eyes\n")
            (root / "a\x1b[31m").write_text("x\n")

        name = reviewed(context, spoof, findings=("seen \x1b]0;title\x07",))
        case = gate.examine(context, name)
        shown = "\n".join([case.diff, case.summary, *map(str, case.flags)])
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "\\x1b[2J" in case.diff
        assert [flag.kind for flag in case.flags] == ["invisible", "finding"]

    def test_a_commit_between_show_and_yes_voids_it(self, context):
        """M09, M10: what was shown is not what would come out; the operator looks again."""
        root = context.layout.root
        name = reviewed(context, edit)

        def meanwhile(case):
            (root / "docs/guide.md").write_text("meanwhile\n")
            repos.git(root, "commit", "--quiet", "--all", "--message", "meanwhile")
            return case.words

        with pytest.raises(OperatorError, match="moved"):
            gates.merge(context, name, ask=meanwhile)
        assert repos.git(root, "log", "-1", "--format=%s") == "meanwhile"
        assert status(root) == []
        assert context.store.load(name).status is Status.REVIEW
        assert context.store.active() == {}
        assert approved(context, name).status is Status.MERGED

    def test_without_isolation_neither_hash_nor_words_merge(self, context):
        """M02: the agent could have typed them itself; a branch of its own can be made."""
        name = reviewed(context, edit, isolation="none")
        refused(context, name)
        refused(context, name, ask=lambda case: case.words)
        assert approved(context, name, branch="look").status is Status.MERGED

    def test_unless_the_operator_himself_allows_it(self, context):
        name = reviewed(context, edit, isolation="none")
        config = records.replace(context.config, trust_unsandboxed=True)
        assert approved(records.replace(context, config=config), name).status is Status.MERGED


class TestInside:
    """An agent that calls the gate itself."""

    @pytest.mark.parametrize("act", ["merge", "reject", "undo"])
    def test_in_the_environment_of_a_run_nothing_goes(self, context, act):
        """T149: M01, even with the right hash, and the attempt is recorded."""
        name = reviewed(context, edit)
        if act == "undo":
            approved(context, name)
        agent = records.replace(context, environ={**context.environ, "AGENT_BOX_MARK": "/w/.agents/runs/x"})
        before = snapshot(context)
        acts = {
            "merge": lambda: gate.merge(agent, name, approve=digest(context, name)),
            "reject": lambda: gate.reject(agent, name, "no"),
            "undo": lambda: gate.undo(agent, name),
        }
        with pytest.raises(OperatorError, match="inside"):
            acts[act]()
        assert snapshot(context) == before
        assert "inside" in last(context, "gate.refused")["why"]

    def test_below_a_recorded_agent_nothing_goes(self, context):
        """T149: by ancestry alone; this very process plays the agent of another run."""
        name = reviewed(context, edit)
        other = abandoned(context, "beef")
        me = {"pid": os.getpid(), "pid_start": procs.start_of(os.getpid())}
        context.store.update(other, lambda now: records.replace(now, **me))
        assert "recorded agent" in refused(context, name, within=gate.inside_a_run)

    def test_a_child_that_sheds_its_environment_is_still_a_child(self, context):
        """T149: M03, a process tree carries the mark where a process does not."""
        name = reviewed(context, edit)
        code = (
            "import sys\nfrom pathlib import Path\nfrom agents import gate\nfrom tests.support import gates\n"
            "context = gates.reopened(Path(sys.argv[1]))\n"
            "try:\n    gates.approved(context, sys.argv[2], within=gate.inside_a_run)\n"
            "except Exception as why:\n    print(type(why).__name__, why)\n"
        )
        words = ["sh", "-c", 'env -u AGENT_BOX_MARK "$@"; exit $?', "sh", sys.executable, "-c", code]
        env = {**os.environ, "AGENT_BOX_MARK": "x", "PYTHONPATH": str(PROJECT)}
        before = snapshot(context)
        done = subprocess.run(
            [*words, str(context.layout.root), name], env=env, capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith("OperatorError This is inside of a run")
        assert snapshot(context) == before


class TestNotNow:
    """States, targets and results that there is nothing to do about."""

    def test_a_second_merge(self, context):
        """T149: N05, a clear error, nothing changed."""
        name = reviewed(context, edit)
        approved(context, name)
        assert "already merged" in refused(context, name)

    @pytest.mark.parametrize(
        ("now", "words"),
        [(Status.ACTIVE, "still runs"), (Status.DONE, "changed nothing"), (Status.CRASHED, "never reviewed"),
         (Status.STALLED, "never reviewed"), (Status.STOPPED, "never reviewed"), (Status.REJECTED, "rejected")],
    )  # fmt: skip
    def test_only_what_was_reviewed(self, context, now, words):
        """M16, M17."""
        name = reviewed(context, edit)
        context.store.update(name, lambda state: records.replace(state, status=now))
        assert words in refused(context, name)

    def test_a_run_that_is_owned(self, context):
        name = reviewed(context, edit)
        owner = context.store.own(name)
        try:
            assert "supervisor" in refused(context, name)
        finally:
            owner.release()

    def test_a_detached_head(self, context):
        name = reviewed(context, edit)
        repos.git(context.layout.root, "switch", "--quiet", "--detach")
        assert "no branch" in refused(context, name)

    @pytest.mark.parametrize("name", ["main", "-x", "a..b", "a b", "", "a\x1b"])
    def test_a_branch_that_cannot_be_made(self, context, name):
        run = reviewed(context, edit)
        if name:
            refused(context, run, branch=name)
        else:
            # No name is no wish for a branch.
            assert approved(context, run, branch=name).merge["target"] == "refs/heads/main"

    def test_a_change_that_is_there_already(self, context):
        name = reviewed(context, edit)
        edit(context.layout.root)
        repos.git(context.layout.root, "commit", "--quiet", "--all", "--message", "the same")
        assert "already there" in refused(context, name)

    def test_a_conflict(self, context):
        """T150: nothing is changed, the files are named, the run stays in REVIEW."""
        root = context.layout.root
        name = reviewed(context, edit)
        (root / "src/app.py").write_text("print('mine')\n")
        repos.git(root, "commit", "--quiet", "--all", "--message", "meanwhile")
        assert "src/app.py" in refused(context, name, judgement.Conflict)
        assert context.store.load(name).status is Status.REVIEW
        assert "src/app.py" in last(context, "gate.conflict")["why"]

    def test_files_in_the_way(self, context):
        """G31."""
        name = reviewed(context, edit)
        (context.layout.root / "src/app.py").write_text("mine\n")
        assert "src/app.py" in refused(context, name)
        assert context.store.active() == {}

    def test_an_index_that_another_git_keeps(self, context):
        """G30."""
        name = reviewed(context, edit)
        (context.layout.root / ".git/index.lock").write_bytes(b"")
        assert "git command" in refused(context, name)


class TestRefusedShapes:
    """G33, G34, M14: what no approval merges. Trees are made by hand, as an export would not carry them."""

    def forged(self, context, *entries):
        """A run in REVIEW whose tree holds *entries* (mode, content, path), with every record in agreement."""
        root = context.layout.root
        base = gates.head(context)
        tree = repos.git(root, "rev-parse", "HEAD^{tree}")
        room = gates.room_of(context, context.layout.root.parent / "forge.git")
        lines = [
            (mode, content if mode == "160000" else self.blob(root, content), path) for mode, content, path in entries
        ]  # fmt: skip
        new = room.with_entries(tree, lines)
        room.send(new)
        patch = room.difference(base, new)
        name = abandoned(context, "f00d")
        (context.store.box(name).path / "changes.patch").write_bytes(patch)
        facts = {"sha256": hashlib.sha256(patch).hexdigest(), "tree": new, "base": base, "files": 1, "added": 1,
                 "removed": 0, "binary": 0, "findings": []}  # fmt: skip
        gates.settle_review(context, name, facts, isolation="none")
        return name

    @staticmethod
    def blob(root, content):
        done = subprocess.run(
            ["git", "hash-object", "-w", "--stdin"], cwd=root, input=content, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    @pytest.mark.parametrize(
        ("mode", "content", "path", "word"),
        [
            ("100644", b"x", b".agents/INDEX.jsonl", "Agent Box"),
            ("100644", b"x", b".claude/commands/merge.md", "Agent Box"),
            ("100644", b"x", b"agent_box/x", "Agent Box"),
            ("120000", b"/etc/passwd", b"link", "symbolic link"),
            ("120000", b"../outside", b"link", "symbolic link"),
            ("120000", b".git/config", b"link", "symbolic link"),
            ("100644", b"[submodule]", b".gitmodules", "submodules"),
            ("160000", "1" * 40, b"vendor", "nested repository"),
        ],
    )  # fmt: skip
    def test_a_shape_that_is_never_merged(self, context, mode, content, path, word):
        name = self.forged(context, (mode, content, path))
        assert word in refused(context, name, AgentError)
        assert word in refused(context, name, AgentError, branch="look")
        assert last(context, "gate.refused")["code"] == 3


class TestTampering:
    """M05-M08: run, tree, patch, state, envelope and ledger agree, or the run is left alone."""

    def tampered(self, context, name):
        message = refused(context, name, Tampered)
        assert context.store.load(name).status is Status.REVIEW
        return message

    @pytest.mark.parametrize("place", [0, 0.5, -1])
    def test_one_byte_of_the_patch(self, context, place):
        """M06: with the old hash or with the new one."""
        name = reviewed(context, edit)
        path = context.store.box(name).path / "changes.patch"
        old, data = digest(context, name), bytearray(path.read_bytes())
        data[int(place * len(data)) if place >= 0 else -1] ^= 1
        path.write_bytes(bytes(data))
        self.tampered(context, name)
        refused(context, name, Tampered, approve=old)
        assert last(context, "gate.refused")["code"] == 5

    def change_state(self, context, name, **patch):
        state = context.store.load(name)
        context.store.update(name, lambda now: records.replace(now, patch={**state.patch, **patch}))

    @pytest.mark.parametrize("field", ["sha256", "tree", "base", "files", "added", "removed", "binary"])
    def test_the_state_alone(self, context, field):
        """M07."""
        name = reviewed(context, edit)
        value = context.store.load(name).patch[field]
        self.change_state(context, name, **{field: value + 1 if isinstance(value, int) else "0" * len(value)})
        self.tampered(context, name)

    def test_state_and_patch_together(self, context):
        """M07: a better patch slipped in with its hash."""
        name, other = reviewed(context, edit, "aaaa"), reviewed(context, everything, "bbbb")
        theirs = context.store.box(other).path / "changes.patch"
        (context.store.box(name).path / "changes.patch").write_bytes(theirs.read_bytes())
        self.change_state(context, name, **context.store.load(other).patch)
        self.tampered(context, name)

    @pytest.mark.parametrize("fields", [{"isolation": "partial"}, {"config_hash": "00000000"}, {"patch": None}])
    def test_the_rest_of_the_state(self, context, fields):
        name = reviewed(context, edit)
        context.store.update(name, lambda now: records.replace(now, **fields))
        self.tampered(context, name)

    def test_the_envelope(self, context):
        name = reviewed(context, edit)
        meta = context.store.box(name).meta
        meta.write_text(meta.read_text().replace("tidy up", "tidy in"))
        self.tampered(context, name)

    @pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
    def test_the_ledger(self, context, damage):
        """M08: its head is kept elsewhere too."""
        name = reviewed(context, edit)
        path = context.layout.ledger
        lines = path.read_bytes().splitlines(keepends=True)
        if damage == "gone":
            path.unlink()
        else:
            lines[-1] = lines[-1].replace(b'"added":1', b'"added":2') if damage == "changed" else b""
            path.write_bytes(b"".join(lines))
        self.tampered(context, name)

    def test_a_box_that_the_ledger_does_not_know(self, context):
        """M05: a forged folder."""
        name = reviewed(context, edit)
        forged = name.replace("a1b2", "f0f0")
        box = context.store.box(name).path
        (box.parent / forged).mkdir()
        subprocess.run(["cp", "-r", f"{box}/.", str(box.parent / forged)], check=True)
        self.tampered(context, forged)

    def test_a_run_that_nobody_finished(self, context):
        """M05: REVIEW in the state alone."""
        name = abandoned(context, "f00d", status=Status.REVIEW)
        refused(context, name, Tampered, approve="0" * 8)

    def test_a_tree_that_the_patch_does_not_give(self, context):
        """Fact 7, I4: every record agrees, the recomputation does not."""
        name = reviewed(context, edit)
        patch = {**context.store.load(name).patch, "tree": repos.git(context.layout.root, "rev-parse", "HEAD^{tree}")}
        context.store.update(name, lambda now: records.replace(now, status=Status.ACTIVE))
        gates.settle_review(context, name, patch)
        assert "does not give the tree" in self.tampered(context, name)


class TestTwo:
    """N05, N06: merges at the same time."""

    def test_the_same_run_is_merged_once(self, context, tmp_path):
        """N05: one wins, the others are told; one commit."""
        name = reviewed(context, edit)
        before, root = gates.head(context), context.layout.root

        won = tmp_path / "won"

        def try_it():
            # Whoever comes too late is told so, and nothing else.
            with contextlib.suppress(OperatorError):
                approved(gates.reopened(root), name)
                with won.open("a") as file:
                    file.write("won\n")

        together([try_it] * 4)
        assert won.read_text() == "won\n"
        assert context.store.load(name).status is Status.MERGED
        assert repos.git(root, "rev-parse", "HEAD^") == before
        assert events(context, name).count("run.merged") == 1
        assert status(root) == []

    def test_different_runs_come_in_one_after_the_other(self, context):
        """N06: each on the HEAD that the one before it made."""
        root = context.layout.root
        names = [
            reviewed(context, lambda tree, at=at: (tree / f"new{at}.txt").write_text("x\n"), f"aaa{at}")
            for at in range(3)
        ]
        together([lambda name=name: approved(gates.reopened(root), name) for name in names])
        assert [context.store.load(name).status for name in names] == [Status.MERGED] * 3
        assert repos.git(root, "rev-list", "--count", "HEAD") == "4"
        assert status(root) == []
        assert audit.audit(context).flaws == ()


class TestReject:
    """No."""

    def test_it_is_recorded_and_the_airlock_goes(self, context):
        name = reviewed(context, edit)
        before = gates.head(context), disk(context.layout.root)
        assert gates.reject(context, name, "too clever").status is Status.REJECTED
        assert last(context, "run.rejected")["why"] == "too clever"
        assert not context.layout.tree(name).exists()
        assert (gates.head(context), disk(context.layout.root)) == before
        assert "better" in gate.diff(context, name)
        assert audit.audit(context).flaws == ()
        assert "rejected" in refused(context, name)

    @pytest.mark.parametrize("now", [Status.ACTIVE, Status.DONE, Status.MERGED, Status.REJECTED])
    def test_only_what_can_be(self, context, now):
        name = reviewed(context, edit)
        context.store.update(name, lambda state: records.replace(state, status=now))
        with pytest.raises(OperatorError, match="nothing to reject"):
            gates.reject(context, name, "no")

    def test_what_crashed_can_be_as_well(self, context):
        name = reviewed(context, edit)
        failure = Failure(kind=FailureKind.OOM, message="killed")
        context.store.update(name, lambda state: records.replace(state, status=Status.CRASHED, failure=failure))
        assert gates.reject(context, name, "no").status is Status.REJECTED


class TestUndo:
    """M20: back, while the branch still stands there."""

    def test_back_to_what_was(self, context):
        root = context.layout.root
        (root / "docs/guide.md").write_text("mine\n")
        before = disk(root), gates.head(context), status(root)
        name = reviewed(context, everything_but_guide)
        approved(context, name)
        state = gates.undo(context, name)
        assert (state.status, state.merge) == (Status.REVIEW, None)
        assert (disk(root), gates.head(context), status(root)) == before
        assert last(context, "run.undone")["status"] == "REVIEW"
        assert audit.audit(context).flaws == ()
        assert approved(context, name).status is Status.MERGED

    def test_a_branch_that_was_made_goes(self, context):
        name = reviewed(context, edit)
        approved(context, name, branch="look")
        gates.undo(context, name)
        assert repos.git(context.layout.root, "for-each-ref", "refs/heads/look") == ""

    def refused(self, context, name):
        before = snapshot(context)
        with pytest.raises(OperatorError) as refusal:
            gates.undo(context, name)
        assert snapshot(context) == before
        assert context.store.active() == {}
        return refusal.value

    def test_not_after_a_later_commit(self, context):
        name = reviewed(context, edit)
        commit = approved(context, name).merge["commit"]
        repos.commit(context.layout.root, {"more.txt": "more\n"})
        assert commit[:12] in self.refused(context, name).hint

    def test_not_over_edits(self, context):
        name = reviewed(context, edit)
        approved(context, name)
        (context.layout.root / "src/app.py").write_text("mine\n")
        assert "src/app.py" in self.refused(context, name).message

    def test_not_what_was_not_merged(self, context):
        assert "not merged" in self.refused(context, reviewed(context, edit)).message

    @pytest.mark.parametrize("branch", [None, "look"])
    def test_not_under_another_work_tree(self, context, branch, tmp_path):
        """A branch that is checked out elsewhere would leave that checkout behind."""
        root = context.layout.root
        name = reviewed(context, edit)
        approved(context, name, branch=branch)
        if branch is None:
            repos.git(root, "switch", "--quiet", "--create", "side")
        repos.git(root, "worktree", "add", "--quiet", str(tmp_path / "linked"), branch or "main")
        assert "checked out" in self.refused(context, name).message

    def test_from_another_branch_the_checkout_stays(self, context):
        root = context.layout.root
        name = reviewed(context, edit)
        approved(context, name)
        repos.git(root, "switch", "--quiet", "--create", "side")
        before = disk(root)
        gates.undo(context, name)
        assert disk(root) == before
        assert (root / "src/app.py").read_text() == "print('better')\n"
        assert repos.git(root, "show", "main:src/app.py") == "print('hello')"


def everything_but_guide(root):
    everything(root)
    (root / "docs/manual.md").rename(root / "docs/guide.md")


def test_an_undo_follows_the_ledger(context):
    """A state that was edited does not move a branch to where somebody wants it."""
    name = reviewed(context, edit)
    state = approved(context, name)
    forged = {**state.merge, "before": repos.git(context.layout.root, "commit-tree", "-m", "x", "HEAD^{tree}")}
    context.store.update(name, lambda now: records.replace(now, merge=forged))
    before = snapshot(context)
    with pytest.raises(Tampered):
        gates.undo(context, name)
    assert snapshot(context) == before


class TestDiff:
    """What a human reads."""

    def test_without_a_patch(self, context):
        with pytest.raises(OperatorError, match="no patch"):
            gate.diff(context, abandoned(context))

    def test_a_patch_that_was_changed_is_not_shown_as_the_one(self, context):
        name = reviewed(context, edit)
        with (context.store.box(name).path / "changes.patch").open("ab") as file:
            file.write(b"\n")
        with pytest.raises(Tampered):
            gate.diff(context, name)


# --- After a crash ----------------------------------------------------------------------------------------------------


def mine(root):
    """Uncommitted work of the operator's; what git says of it."""
    (root / "README.md").write_text("mine\n")
    (root / "untracked").write_text("mine as well\n")
    return status(root)


def kill_at(at):
    """A failpoint that kills this process before its effect number *at*."""
    left = at

    def watch(_name):
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return watch


def small(root):
    edit(root)
    (root / "src/old.py").unlink()


MERGE_EFFECTS = 13


def test_a_merge_has_so_many_effects(context):
    seen = []
    approved(context, reviewed(context, small), failpoint=seen.append)
    assert len(seen) == MERGE_EFFECTS
    assert seen.index("say that it is being merged") < seen.index("move the ref") < seen.index("say that it is merged")


@pytest.mark.parametrize("at", range(MERGE_EFFECTS))
def test_a_merge_that_is_killed_is_finished_or_taken_back(context, at):
    """C11: before every effect; state, ledger, branch, index and files agree afterwards, the operator's edits stay."""
    root = context.layout.root
    edits = mine(root)
    name, before = reviewed(context, small), gates.head(context)
    assert ended(fork(lambda: approved(context, name, failpoint=kill_at(at)))) == -signal.SIGKILL
    was_marked = name in context.store.active().values()
    assert was_marked or not gate.unfinished(context, name)
    again = gates.reopened(root)
    gate.recover(again, name)
    state = again.store.load(name)
    assert status(root) == edits
    assert not gate.unfinished(again, name)
    sweep(again)
    assert again.store.active() == {}
    assert not (root / ".git/index.lock").exists()
    if state.status is Status.MERGED:
        assert tree_at(root) == state.merge["tree"]
        assert repos.git(root, "rev-parse", "HEAD^") == before
    else:
        assert (state.status, gates.head(again)) == (Status.REVIEW, before)
        assert approved(again, name).status is Status.MERGED
    assert events(again, name).count("run.merged") == 1
    assert audit.audit(again).flaws == ()
    assert status(root) == edits


@pytest.mark.parametrize("at", range(8))
def test_an_undo_that_is_killed_is_finished_or_taken_back(context, at):
    """C11, M20."""
    root = context.layout.root
    edits = mine(root)
    name, before = reviewed(context, small), gates.head(context)
    commit = approved(context, name).merge["commit"]
    assert ended(fork(lambda: gates.undo(context, name, failpoint=kill_at(at)))) == -signal.SIGKILL
    again = gates.reopened(root)
    gate.recover(again, name)
    state = again.store.load(name)
    assert (state.status, gates.head(again)) in {(Status.REVIEW, before), (Status.MERGED, commit)}
    assert status(root) == edits
    assert not gate.unfinished(again, name)
    if state.status is Status.MERGED:
        gates.undo(again, name)
    assert gates.head(again) == before
    assert audit.audit(again).flaws == ()


def test_the_next_merge_finishes_the_killed_one_first(context):
    name = reviewed(context, small)
    assert ended(fork(lambda: approved(context, name, failpoint=kill_at(8)))) == -signal.SIGKILL
    with pytest.raises(OperatorError, match="already merged"):
        approved(context, name)
    assert tree_at(context.layout.root) == context.store.load(name).merge["tree"]


def test_a_live_merge_is_not_recovered(context):
    """The lock says that somebody is at it."""
    name = reviewed(context, small)
    seen = []

    def look(step):
        if step == "move the ref":
            seen.append(
                (ended(fork(lambda: exits(gate.recover(context, name) is None))), gate.unfinished(context, name))
            )

    approved(context, name, failpoint=look)
    assert seen == [(0, True)]


def exits(good):
    assert good


def test_what_the_operator_edited_after_the_crash_is_told(context):
    root = context.layout.root
    name = reviewed(context, small)
    assert ended(fork(lambda: approved(context, name, failpoint=kill_at(6)))) == -signal.SIGKILL
    (root / "src/app.py").write_text("rescued\n")
    state = gate.recover(context, name)
    assert state.status is Status.MERGED
    assert any("src/app.py" in note for note in state.notes)
    assert (root / "src/app.py").read_text() == "rescued\n"


def test_with_nothing_unfinished_there_is_nothing_to_recover(context):
    name = reviewed(context, edit)
    assert gate.recover(context, name) is None
    assert not gate.unfinished(context, name)


# --- The commands that verify -----------------------------------------------------------------------------------------


def runner(exit_code=0, seen=None):
    def run(command, folder):
        if seen is not None:
            seen.append((command, (folder / "src/app.py").read_text()))
        return SimpleNamespace(command=command, exit_code=exit_code, seconds=0.1, timed_out=False, tail="said\n")

    return run


class TestVerify:
    """`verify:` on the merged result."""

    @pytest.fixture
    def context(self, tmp_path):
        return make_context(tmp_path, verify=["make test"])

    def test_the_result_is_what_is_verified(self, context):
        """The merged tree, not the agent's: main has moved."""
        root, seen = context.layout.root, []
        name = reviewed(context, edit)
        repos.commit(root, {"docs/guide.md": "moved\n"})
        state = approved(context, name, runner=runner(seen=seen))
        assert seen == [("make test", "print('better')\n")]
        told = json.loads((context.store.box(name).path / "verify.json").read_text())
        assert told["tree"] == state.merge["tree"]
        assert [each["passed"] for each in told["commands"]] == [True]
        assert not (root / "agent_box/verify").exists() or not list((root / "agent_box/verify").iterdir())

    def test_a_failure_stops_the_merge(self, context):
        name = reviewed(context, edit)
        assert "make test (exit code 3" in refused(context, name, runner=runner(3))
        assert "--branch" in last_hint(context, name)

    def test_a_branch_may_hold_what_fails(self, context):
        """To look at it: it is flagged."""
        name = reviewed(context, edit)
        state = approved(context, name, runner=runner(3), branch="look")
        assert state.merge["flags"] == ["verify"]

    def test_touched_tests_that_fail_as_they_were_are_flagged(self, context):
        name = reviewed(context, lambda root: (root / "test_app.py").write_text("pass\n"))

        def run(command, folder):
            return runner(0 if (folder / "test_app.py").exists() else 1)(command, folder)

        case = gate.examine(context, name, runner=run)
        assert [flag.kind for flag in case.flags] == ["tests", "base tests"]
        assert approved(context, name, runner=run).status is Status.MERGED


def last_hint(context, name):
    with pytest.raises(OperatorError) as refusal:
        approved(context, name, runner=runner(3))
    return refusal.value.hint


def test_the_airlock_of_another_run_is_not_touched(context):
    one, other = reviewed(context, edit, "aaaa"), reviewed(context, edit, "bbbb")
    approved(context, one)
    assert context.layout.tree(other).exists()
    assert airlock.existing(context.repo, context.layout, context.store.box(other), context.repo.head) is not None
