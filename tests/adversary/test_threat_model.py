"""docs/threat-model.md says what the tests show: every attack and test of this package stands in it, and nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.adversary.test_attacks import CATALOGUE

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "threat-model.md"
NOT_PROMISED = "not promised"


def _page() -> str:
    return PAGE.read_text("utf-8")


def _rows() -> dict[str, list[str]]:
    """The rows of the page's tables of attacks, by the attack's name."""
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in _page().splitlines() if line.startswith("| `")
    ]
    return {row[0].strip("`"): row[1:] for row in cells if len(row) == 5}


def _tests() -> set[str]:
    trees = [ast.parse(path.read_text("utf-8")) for path in HERE.glob("test_*.py")]
    return {
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_attack_stands_in_the_threat_model_and_the_reverse() -> None:
    assert sorted(_rows()) == sorted(attack.name for attack in CATALOGUE)


@pytest.mark.parametrize("attack", CATALOGUE, ids=lambda attack: attack.name)
def test_a_row_says_what_its_test_shows(attack) -> None:
    """The faults are the same, and what has no test at a wall is called not promised there, and only that."""
    _, faults, *walls = _rows()[attack.name]
    assert faults == attack.faults
    assert [NOT_PROMISED in said for said in walls] == [attack.full is None, attack.none is None]


def test_every_other_test_of_the_package_is_named() -> None:
    named = set(re.findall(r"`(test_\w+)`", _page()))
    assert named == _tests()


def test_every_fault_that_is_named_belongs_to_an_attack_or_a_test() -> None:
    shown = {fault for attack in CATALOGUE for fault in attack.faults.split()}
    sources = "".join(path.read_text("utf-8") for path in HERE.glob("test_*.py"))
    shown |= set(re.findall(r"\b[CPNGSIMKT]\d\d\b", sources))
    assert set(re.findall(r"\b[CPNGSIMKT]\d\d\b", _page())) <= shown
