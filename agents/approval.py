"""What an approval is bound to, and whether the words or the hash that a human gave are one."""

from __future__ import annotations

import json

from agents.errors import OperatorError
from essentials import digests
from essentials.patterns import late
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from agents.risk import Flag

SHORTEST: Final = 8
"""Hex digits of the patch's hash that are enough for `--approve` (issue 3, contract details)."""
_LONGEST: Final = 64
_HEX: Final = late(r"[0-9a-f]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What an approval says yes to: it counts for nothing else (M10, M11; design, section 7)."""

    repository: str
    """Path of the common git directory."""
    run: str
    short_id: str
    target: str
    """The ref that moves, or is made."""
    before: str
    """The commit that the result is built on."""
    tree: str
    """The result, byte by byte."""
    patch_sha256: str
    flags: tuple[Flag, ...] = ()
    """Everything that was shown; a yes acknowledges it."""

    def digest(self) -> str:
        """SHA-256 of the statement: what the ledger keeps of it."""
        # A list in a fixed order: the same statement has one form only.
        flags = [[flag.kind, flag.message, list(flag.paths)] for flag in self.flags]
        parts = [
            self.repository, self.run, self.short_id, self.target, self.before, self.tree, self.patch_sha256, flags,
        ]  # fmt: skip
        return digests.sha256(json.dumps(parts, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()


def check(given: str, patch_sha256: str) -> None:
    """Accept *given* as a prefix of *patch_sha256*, the hash of changes.patch; else raises OperatorError (T149)."""
    word = given.strip().lower()
    if not SHORTEST <= len(word) <= _LONGEST or not _HEX.fullmatch(word):
        raise OperatorError(
            "An approval is the beginning of the patch's SHA-256, 8 to 64 hex digits.",
            "Read the patch, then type: sha256sum changes.patch",
        )
    # The hash is no secret that could be guessed digit by digit: a plain comparison will do.
    if not patch_sha256.startswith(word):
        raise OperatorError("This approval is for another patch.", "Look at the patch as it is now: ./agent diff <run>")


def expected_words(statement: Statement) -> str:
    """What a human types at the terminal: the run that is meant, the first eight of the tree that was shown (M15)."""
    return f"{statement.short_id} {statement.tree[:SHORTEST]}"


def confirm(typed: str, statement: Statement) -> None:
    """Accept *typed* as the words for *statement*; raises OperatorError for anything else, a plain yes included."""
    # How blanks and capitals were typed says nothing about what was meant.
    if " ".join(typed.split()).lower() != expected_words(statement):
        raise OperatorError("These are not the words; nothing was merged.", "Type them exactly as they are shown.")


def allow(isolation: str, run: str, *, trusted: bool) -> None:
    """Raise OperatorError where neither words nor a hash may merge the run: its agent was not isolated (fact 1, M02).

    *trusted* says that the operator's own configuration, outside of the repository, allows it all the same: a program
    without isolation could have typed the words itself.
    """
    if isolation == "none" and not trusted:
        raise OperatorError(
            "This run had no isolation, so an approval on this machine proves nothing.",
            f"Look at it on a branch of its own: ./agent merge {run} --branch NAME",
        )


def missing(short_id: str) -> OperatorError:
    """The error for a merge without a terminal and without a hash (M04, T149)."""
    return OperatorError(
        "There is no terminal to approve at.", f"Type: ./agent merge {short_id} --approve <sha256 of changes.patch>"
    )
