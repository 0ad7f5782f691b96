from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.surveys import SHOP, commit, shop

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks" / "ranking"


def script(name, *words):
    done = subprocess.run([sys.executable, SCRIPTS / name, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_evaluation_runs_from_clones_to_figures(tmp_path):
    repo = shop(tmp_path / "clones" / "own+shop")
    fixed = SHOP["src/shop/stock.py"].replace("return ", "return not ")
    sha = commit(repo, "Fix reserving an item twice in the warehouse\n\nFixes #7", {"src/shop/stock.py": fixed})
    commit(repo, "Fix a typo in the readme of this shop", {"README.md": "# Shop\n"})
    rows = json.loads(script("collect.py", tmp_path / "clones", "tuning=own/shop"))
    assert rows == [{"repository": "own/shop", "split": "tuning", "commits": [sha]}]
    (tmp_path / "set.json").write_text(json.dumps(rows))
    told = script("evaluate.py", tmp_path / "clones", "--dataset", tmp_path / "set.json", "--split", "tuning", "--json")
    figures = json.loads(told)
    assert figures["tuning survey"] == {"commits": 1, "@1": 100.0, "@3": 100.0, "@5": 100.0, "@10": 100.0}
    assert figures["tuning plain"]["commits"] == 1


def test_the_shipped_sets_are_well_formed_and_split_by_repository():
    rows = json.loads((SCRIPTS / "dataset.json").read_text("utf-8"))
    split = {row["repository"]: row["split"] for row in rows}
    assert len(split) == len(rows) > 20
    assert set(split.values()) == {"tuning", "held_out"}
    assert all(len(oid) == 40 for row in rows for oid in row["commits"])
    questions = json.loads((SCRIPTS / "questions.json").read_text("utf-8"))
    assert len(questions) >= 40
    assert all(text and paths and not any(path.startswith("/") for path in paths) for text, paths in questions)
