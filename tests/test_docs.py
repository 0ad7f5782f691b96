"""Documents that come from the code are what the code says; the others point at things that exist."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _make():
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "docs" / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKE = _make()


@pytest.mark.parametrize("name", sorted(MAKE.DOCUMENTS))
def test_a_generated_document_is_current(name):
    """Run `python docs/make.py` where this fails."""
    assert (ROOT / name).read_text("utf-8") == MAKE.DOCUMENTS[name]()


def test_every_oracle_row_that_is_claimed_exists():
    assert all(1 <= number <= 160 for number in MAKE.rows())


def test_the_architecture_page_shows_the_diagram_of_the_table():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert MAKE.states().strip() in page


def test_the_map_names_every_module_of_the_supervisor():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    section = page.partition("## A map")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([a-z_]+)`", section)) - {"agents"}
    alone = {"__init__", "__main__", "bootstrap"}
    shared = {"essentials", *(path.stem for path in (ROOT / "essentials").glob("*.py"))} - {"__init__"}
    assert named == {path.stem for path in (ROOT / "agents").glob("*.py")} - alone | shared


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text("utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert ((ROOT / page).parent / target).exists(), target


def test_every_verb_of_the_reference_has_an_example():
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    for section in page.split("\n## ")[1:]:
        assert "Example: ./agent" in section, section.splitlines()[0]


def test_the_prerendered_help_is_what_the_full_command_line_says():
    full = subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, '.'); from agents.cli import run; sys.exit(run(['--help']))"],
                          cwd=ROOT, capture_output=True, text=True, check=True, env={"COLUMNS": "100", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})  # fmt: skip
    assert full.stdout.strip().splitlines()[0] == (ROOT / "agents" / "help.txt").read_text("utf-8").splitlines()[0]
    assert {
        line.split()[0]
        for line in full.stdout.split("Commands:")[1].splitlines()
        if line.startswith("  ") and line.strip()
    } >= {"scout", "demo"}
