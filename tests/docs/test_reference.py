"""Tests of the reference pages: the code writes them, and none is stale."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GENERATOR = ROOT / "docs" / "site" / "reference.py"
GENERATED = runpy.run_path(str(GENERATOR))
FOLDER = ROOT / "docs" / "reference"


@pytest.mark.parametrize("name", GENERATED["PAGES"])
def test_a_page_is_what_the_code_says(name: str) -> None:
    page = FOLDER / name
    is_fresh = page.exists() and page.read_text("utf-8") == GENERATED["PAGES"][name]()
    assert is_fresh, f"docs/reference/{name} is stale: run {GENERATED['COMMAND']}"


def test_no_page_is_written_by_hand() -> None:
    assert sorted(page.name for page in FOLDER.iterdir()) == sorted(GENERATED["PAGES"])
