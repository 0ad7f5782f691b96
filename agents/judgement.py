"""What a merge would be, before anybody says yes: evidence checked, result computed, risks judged."""

from __future__ import annotations

import contextlib

from agents import approval, audit, files, git, journal, landing, risk, settle, verifying
from agents.approval import Statement
from agents.cleanroom import CleanRoom, Merged
from agents.errors import AgentError, OperatorError, Tampered
from agents.model import Status
from agents.redact import visible
from agents.risk import Flag, Sizes
from essentials import digests, records
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Final

    from agents.cleanroom import Change
    from agents.context import Context
    from agents.model import RunMeta, RunState
    from agents.verifying import Verified

_HINT: Final = "Type: ./agent verify"
_SEALED: Final = ("sha256", "tree", "base", "files", "added", "removed", "binary")
"""What state and ledger say of a patch in the same words; findings may be cut short in the ledger."""
_BOUND: Final = ("sha256", "tree", "base")
_SHOWN: Final = 10
_LINK_CAP: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything that the operator is shown, and that an approval is bound to (design, section 7)."""

    meta: RunMeta
    state: RunState
    repository: str
    target: str
    """Full name of the branch that moves, or that is made."""
    before: str
    """The commit that the result is built on: HEAD as it is now."""
    tree: str
    """The result."""
    changes: tuple[Change, ...]
    """From *before* to *tree*."""
    sizes: Sizes
    risks: tuple[Flag, ...]
    patch: bytes
    """The same as a patch."""
    is_new: bool = False
    """Whether the target is a new branch (`--branch`)."""
    verified: tuple[Verified, ...] = ()
    """How the `verify:` commands ended on the result."""

    @property
    def flags(self) -> tuple[Flag, ...]:
        """What an approval acknowledges: risks, failed commands, and what the export found odd."""
        # What the export could not carry over is part of what the operator accepts.
        findings = (self.state.patch or {}).get("findings") or ()
        told = tuple(Flag("finding", visible(str(each))) for each in findings)
        return (*self.risks, *verifying.flags(self.verified), *told)

    @property
    def statement(self) -> Statement:
        """What an approval says yes to."""
        return Statement(
            repository=self.repository, run=self.meta.run_name, short_id=self.meta.short_id, target=self.target,
            before=self.before, tree=self.tree, patch_sha256=str((self.state.patch or {})["sha256"]), flags=self.flags,
        )  # fmt: skip

    @property
    def summary(self) -> str:
        """One line: the run, where it goes, how large it is."""
        count = f"{self.sizes.files} file{'' if self.sizes.files == 1 else 's'}"
        size = f"{count}, +{self.sizes.added} −{self.sizes.removed}"
        binary = f", {self.sizes.binary} binary" if self.sizes.binary else ""
        moved = "" if self.before == self.meta.repo_sha_start else f" (moved on since {self.meta.repo_sha_start[:8]})"
        name = self.target.removeprefix("refs/heads/")
        return f"{self.meta.short_id} → {visible(name)} at {self.before[:8]}{moved}: {size}{binary}"

    @property
    def diff(self) -> str:
        """The whole change, with nothing in it that could drive a terminal or hide (M15)."""
        return shown(self.patch)

    @property
    def words(self) -> str:
        """What a human types at the terminal to approve."""
        return approval.expected_words(self.statement)


def shown(patch: bytes) -> str:
    """A patch for people: every byte of it, those that drive a terminal or are not seen as escapes."""
    return visible(patch.decode("utf-8", "backslashreplace"), newlines=True)


@contextlib.contextmanager
def bench(context: Context, name: str) -> Iterator[CleanRoom]:
    """A clean room for one look at the run *name*, gone afterwards; the caller holds the merge lock."""
    path = context.store.box(name).bench
    # One that a killed merge left behind was made for another HEAD.
    files.remove_tree(path)
    try:
        yield CleanRoom.make(path, context.repo, passing=True)
    finally:
        files.remove_tree(path)


def reviewable(context: Context, name: str) -> tuple[RunMeta, RunState]:
    """Envelope and state of the run *name*, which is in REVIEW; raises OperatorError where it is not (M16, M17)."""
    state, meta = context.store.load(name), context.store.meta(name)
    if state.status is Status.REVIEW:
        return meta, state
    words: dict[Status, tuple[str, str]] = {
        Status.MERGED: ("is already merged", f"Type: ./agent show {meta.short_id}"),
        Status.ACTIVE: ("still runs", f"Wait for it, or type: ./agent stop {meta.short_id}"),
        Status.MERGING: ("is being merged", "Type: ./agent status"),
        Status.DONE: ("changed nothing that could be merged", f"Type: ./agent show {meta.short_id}"),
        Status.REJECTED: ("was rejected", f"Type: ./agent show {meta.short_id}"),
    }
    resume = (f"is {state.status} and was never reviewed", f"Go on with it: ./agent resume {meta.short_id}")
    what, hint = words.get(state.status, resume)
    raise OperatorError(f"Run {meta.short_id} {what}.", hint)


def examine(context: Context, name: str, room: CleanRoom, *, branch: str | None = None) -> Case:
    """What merging the run *name* would be today: onto the branch that HEAD is on, or a new *branch*.

    Raises OperatorError where there is nothing to merge, HEAD is detached, or the change conflicts with what was
    committed since; AgentError where the change has a shape that is never merged; Tampered where box, ledger and
    recomputation disagree. Nothing is changed by it.
    """
    meta, state = reviewable(context, name)
    patch = _evidence(context, name, state)
    tree = _recomputed(room, patch, state)
    head, current = landing.head(context.repo)
    target = _new_branch(context, branch) if branch else _current(current)
    base = str((state.patch or {})["base"])
    # Where nothing was committed since, there is nothing to merge it with.
    merged = Merged(tree) if head == base else room.merge(base, head, tree)
    if merged.tree is None:
        paths = tuple(visible(path.decode("utf-8", "backslashreplace")) for path in merged.conflicts)
        raise Conflict(paths, base)
    survey = room.survey(head, merged.tree)
    changes, counts, text = survey.changes, survey.counts, survey.patch
    if not changes:
        raise OperatorError("Everything that it changed is already there.", f"Type: ./agent reject {meta.short_id}")
    sizes = Sizes(counts.files, counts.added, counts.removed, counts.binary)
    verdict = risk.judge(changes, sizes, links=_links(room, changes), text=risk.read_patch(text))
    if verdict.refused:
        raise AgentError(" ".join(map(str, verdict.refused)), f"Type: ./agent reject {meta.short_id}")
    return Case(
        meta=meta, state=state, repository=str(context.repo.common_dir), target=target, before=head, tree=merged.tree,
        changes=changes, sizes=sizes, risks=verdict.elevated, patch=text, is_new=bool(branch),
    )  # fmt: skip


class Conflict(OperatorError):  # noqa: N818 - it names what was found
    """The change and what was committed since disagree; *paths* are the files (G29, T150)."""

    def __init__(self, paths: tuple[str, ...], base: str) -> None:
        more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
        super().__init__(
            f"It conflicts with what was committed since: {', '.join(paths[:_SHOWN])}{more}.",
            f"Start it anew, or take it on where it began: git switch -c NAME {base[:12]} && git apply --index PATCH",
        )
        self.paths = paths


# --- Evidence ---------------------------------------------------------------------------------------------------------


def _evidence(context: Context, name: str, state: RunState) -> bytes:
    """The patch of the run, after ledger, state, envelope and file were found to agree (M05-M08)."""
    # Chain, anchors outside of the repository, and the seal over every file of the box (M06, M08).
    flaws = audit.of_run(context, name)
    if flaws:
        raise Tampered(flaws[0].message, _HINT)
    entries = context.journal.story(name)
    facts = audit.last_facts(entries).get(name, {})
    # The seal of the last end counts; a run that was never finished by its supervisor has none.
    sealed: Mapping[str, str] = next(filter(None, map(journal.evidence, reversed(entries))), {})
    _check_told(name, state, facts, sealed)
    _check_envelope(name, state, facts, entries)
    box = context.store.box(name)
    if facts.get("meta_sha256", sealed.get("meta.yaml")) != settle.hash_file(box, "meta.yaml"):
        raise Tampered(f"meta.yaml of {name} is not what was sealed.", _HINT)
    # Read once: what is hashed here is what is applied later, whatever happens to the file (M09).
    data = files.read_capped(box.path / "changes.patch", settle.PATCH_LIMIT)
    recorded = (state.patch or {}).get("sha256")
    if data is None or not _agree(digests.sha256(data).hexdigest(), recorded, sealed.get("changes.patch")):
        raise Tampered(f"changes.patch of {name} is not what was sealed.", _HINT)
    return data


def _check_envelope(name: str, state: RunState, facts: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> None:
    """Raise Tampered unless the run began and ended in the envelope that *state* tells of; *entries* are its own."""
    if facts.get("config_hash") != state.config_hash or facts.get("isolation") != state.isolation:
        raise Tampered(f"State and ledger of {name} tell of different envelopes.", _HINT)
    # What was said before the agent lived counts for more than what it could have written while it did.
    begun = [entry["facts"] for entry in entries if entry.get("event") in {"run.started", "run.resumed"}][-1:]
    if any(told.get(key) != value for told in begun for key, value in _envelope(state, told)):
        raise Tampered(f"{name} did not begin in the envelope that its state tells of.", _HINT)


def _envelope(state: RunState, begun: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """What the state says of the envelope, by the name that the entry of the start, *begun*, has for it."""
    told = {"isolation": state.isolation, "config_hash": state.config_hash, "attempt": state.attempt}
    yield from ((key, value) for key, value in told.items() if key in begun)


def _check_told(name: str, state: RunState, facts: Mapping[str, Any], sealed: Mapping[str, str]) -> None:
    """Raise Tampered unless *state* and what the ledger says, *facts* and *sealed*, tell the same."""
    patch, told = dict(state.patch or {}), facts.get("patch") or {}
    if facts.get("status") != str(state.status) or not sealed or not all(map(patch.get, _BOUND)):
        raise Tampered(f"The ledger does not say that {name} is in REVIEW.", _HINT)
    if not isinstance(told, dict) or any(told.get(key) != patch.get(key) for key in _SEALED):
        raise Tampered(f"State and ledger of {name} tell of different patches.", _HINT)


def _agree(*hashes: str | None) -> bool:
    return None not in hashes and len(set(hashes)) == 1


def _recomputed(room: CleanRoom, patch: bytes, state: RunState) -> str:
    """The tree that was recorded, after base and patch were found to give it (fact 7, I4)."""
    recorded: Mapping[str, Any] = state.patch or {}
    # git applies some damaged patches without a word, so only the tree counts as proof.
    tree = room.apply(str(recorded["base"]), patch)
    if tree != recorded["tree"]:
        raise Tampered("The patch does not give the tree that was recorded.", _HINT)
    return tree


# --- Target -----------------------------------------------------------------------------------------------------------


def _current(ref: str | None) -> str:
    if ref is None or not ref.startswith("refs/heads/"):
        raise OperatorError("HEAD is on no branch.", "Switch to one, or merge to a new branch: --branch NAME")
    return ref


def _new_branch(context: Context, name: str) -> str:
    ref = f"refs/heads/{name}"
    # git itself would refuse these later, in words that say nothing about `--branch`.
    if name.startswith("-") or git.run(context.repo.root, "check-ref-format", ref).returncode:
        raise OperatorError(f"“{visible(name)}” cannot be the name of a branch.", "Choose another: --branch NAME")
    if git.run(context.repo.root, "rev-parse", "--verify", "--quiet", ref).returncode == 0:
        raise OperatorError(f"The branch {visible(name)} exists already.", "Choose another: --branch NAME")
    return ref


def _links(room: CleanRoom, changes: Sequence[Change]) -> dict[bytes, bytes]:
    """Targets of the symbolic links that *changes* make or change."""
    made = [change for change in changes if change.new_mode == "120000"]
    return {change.path: room.blob(change.new_id, _LINK_CAP) for change in made}


def with_verified(case: Case, found: tuple[Verified, ...]) -> Case:
    """*case* with how the `verify:` commands ended."""
    return records.replace(case, verified=found)
