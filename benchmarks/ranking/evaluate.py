"""Measure the ranking on bug-fix commits: message in, touched source files out, index and history of the parent commit.

    python benchmarks/ranking/evaluate.py FOLDER [--split held_out] [--no-history] [--json]
    python benchmarks/ranking/evaluate.py --library

FOLDER holds a clone of ``owner/name`` as ``owner+name``; ``--library`` asks questions.json about this Python's standard
library instead (see docs/ranking.md). Both rankings see the same source files; the plain one is BM25
(k1 1.2, b 0.75) over whole files.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import sys
import sysconfig
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from typing import TYPE_CHECKING

from collect import clone_of, sources_of

from essentials.records import replace
from hollow.documents import decoded, is_text
from hollow.gitread import git
from hollow.kinds import Kind, kind
from hollow.survey import TUNED, survey
from hollow.tracked import contents, snapshot

if TYPE_CHECKING:
    from hollow.ranking import Weights

CUTS = (1, 3, 5, 10)
TRAILER = re.compile(
    r"^(?:[A-Z][\w-]+-by|Cc|Change-Id|PiperOrigin-RevId): .*$|^(?:Closes|Fixes|Fix|Refs?|Resolves):? +#\d+.*$",
    re.MULTILINE,
)
ISSUE = re.compile(r"\(?(?:GH-|#)\d+\)?|https?://\S+")


def message_of(clone: Path, oid: str) -> str:
    """Return the commit's message without trailers, addresses and issue numbers."""
    shown = git(clone, "show", "-s", "--format=%B", oid).decode("utf-8", "replace")
    return ISSUE.sub("", TRAILER.sub("", shown)).strip()


class Plain:
    """BM25 over whole files, the yardstick: lower-case words, nothing split, nothing weighted."""

    def __init__(self) -> None:
        self._bags: dict[str, Counter[str]] = {}

    def rank(self, clone: Path, treeish: str, text: str) -> list[str]:
        """Return the source files at *treeish*, likeliest first."""
        snap = snapshot(clone, treeish)
        files = [file for file in snap.files if kind(file.path) is Kind.SOURCE]
        for file, content in contents(snap, [file for file in files if file.key not in self._bags]):
            words = re.findall(r"[a-z0-9]+", decoded(content).lower()) if content and is_text(content) else []
            self._bags[file.key] = Counter(words)
        bags = {file.path: self._bags[file.key] for file in files}
        mean = sum(bag.total() for bag in bags.values()) / max(1, len(bags)) or 1.0
        frequency = Counter(word for bag in bags.values() for word in bag)
        terms = set(re.findall(r"[a-z0-9]+", text.lower()))

        def score(bag: Counter[str]) -> float:
            room = 1.2 * (0.25 + 0.75 * bag.total() / mean)
            return sum(
                math.log(1 + (len(bags) - frequency[t] + 0.5) / (frequency[t] + 0.5)) * bag[t] * 2.2 / (bag[t] + room)
                for t in terms
                if bag[t]
            )

        return sorted(bags, key=lambda path: (-score(bags[path]), path))


def accuracies(ranks: list[int]) -> dict[str, float]:
    """Return the share of *ranks* (0-based) within each cut, in per cent."""
    return {f"@{cut}": 100 * sum(rank < cut for rank in ranks) / max(1, len(ranks)) for cut in CUTS}


def first_of(ranked: list[str], gold: list[str]) -> int:
    """Return the position of the first of *gold* in *ranked*, or a large number."""
    return next((at for at, path in enumerate(ranked) if path in gold), 10**6)


def measure(folder: Path, rows: list[dict], indexes: Path, weights: Weights) -> dict[str, dict[str, list[int]]]:
    """Return the ranks of both methods by repository."""
    found: dict[str, dict[str, list[int]]] = defaultdict(lambda: {"plain": [], "survey": []})
    for row in rows:
        clone, plain = clone_of(folder, row["repository"]), Plain()
        for oid in row["commits"]:
            text, gold, parent = message_of(clone, oid), sources_of(clone, oid), f"{oid}^"
            base = git(clone, "rev-parse", parent).decode("ascii").strip()
            told = survey(
                clone, indexes / row["repository"].replace("/", "+"), text, treeish=base, most=200, weights=weights
            )
            ranked = [hit.path for hit in told.hits if kind(hit.path) is Kind.SOURCE]
            found[row["repository"]]["survey"].append(first_of(ranked, gold))
            found[row["repository"]]["plain"].append(first_of(plain.rank(clone, base, text), gold))
        print(
            row["repository"],
            {name: accuracies(ranks) for name, ranks in found[row["repository"]].items()},
            file=sys.stderr,
        )
    return found


def library(scratch: Path) -> dict[str, list[int]]:
    """Return the ranks of both methods for the questions about the standard library, copied into a repository."""
    lib, repo = Path(sysconfig.get_path("stdlib")), scratch / "lib"
    skipped = shutil.ignore_patterns("__pycache__", "site-packages", "dist-packages", "*.so", "config-*")
    shutil.copytree(lib, repo, ignore=skipped, symlinks=True)
    for words in (["init", "-q"], ["add", "-A"]):
        git(repo, *words)
    tree = git(repo, "write-tree").decode("ascii").strip()
    plain, ranks = Plain(), {"plain": [], "survey": []}
    for text, gold in json.loads((Path(__file__).parent / "questions.json").read_text("utf-8")):
        ranked = [hit.path for hit in survey(repo, scratch / "index", text, most=200).hits]
        ranks["survey"].append(first_of([path for path in ranked if kind(path) is Kind.SOURCE], gold))
        ranks["plain"].append(first_of(plain.rank(repo, tree, text), gold))
    return ranks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--library", action="store_true", help="questions about the standard library")
    parser.add_argument("--dataset", type=Path, default=Path(__file__).parent / "dataset.json")
    parser.add_argument("--split", choices=("tuning", "held_out"))
    parser.add_argument("--no-history", action="store_true", help="as in a clone without a past")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = json.loads(options.dataset.read_text("utf-8"))
    weights = replace(TUNED, history=0.0, churn=0.0) if options.no_history else TUNED
    results = {}
    with tempfile.TemporaryDirectory() as indexes:
        if options.library:
            for method, ranks in library(Path(indexes)).items():
                results[f"library {method}"] = {"commits": len(ranks), **accuracies(ranks)}
            rows, options.split = [], "none"
        for split in [options.split] if options.split else ["tuning", "held_out"]:
            chosen = [row for row in rows if row["split"] == split]
            found = measure(options.folder, chosen, Path(indexes), weights)
            for method in ("plain", "survey") if found else ():
                ranks = [rank for one in found.values() for rank in one[method]]
                results[f"{split} {method}"] = {"commits": len(ranks), **accuracies(ranks)}
    if options.json:
        print(json.dumps(results, indent=1))
        return 0
    print("| set | commits | acc@1 | acc@3 | acc@5 | acc@10 |\n|---|---|---|---|---|---|")
    for name, row in results.items():
        print(f"| {name} | {row['commits']} | " + " | ".join(f"{row[f'@{cut}']:.0f}" for cut in CUTS) + " |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
