"""Tests of the pages that explain: the functions, words and layers they name are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from tests.architecture.imports import LAYERS
from tests.docs.test_pages import blocks, spans

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "explanation").glob("*.md"))
ARCHITECTURE = ROOT / "docs" / "explanation" / "architecture.md"
WORDS = ROOT / "native" / "ring" / "words.h"


def sources() -> str:
    folders = ("native", "compute", "topics", "streamtrain")
    files = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".h", ".cpp"))
    return "\n".join(path.read_text("utf-8") for path in files)


def test_functions_and_words_of_the_code_exist() -> None:
    code = set(re.findall(r"\w+", sources()))
    called = {(page.stem, span) for page in PAGES for span in spans(page) if re.fullmatch(r"(\w+::)?\w+\(\)", span)}
    assert len(called) > 10
    assert {each for each in called if not {*re.findall(r"\w+", each[1])} <= code} == set()


def test_every_shared_word_has_its_writer() -> None:
    """The table of words has every struct of words.h with every member that processes share."""
    text = re.sub(r"//.*", "", WORDS.read_text("utf-8"))
    (after,) = re.findall(r"^## Who writes which shared word\n(.*?)^## ", ARCHITECTURE.read_text("utf-8"), re.M | re.S)
    rows = {row.split("`")[1]: set(re.findall(r"`(\w+)`", row)) for row in after.splitlines() if row.startswith("| `")}
    structs = dict(re.findall(r"^struct (?:alignas\(64\) )?(\w+) \{\n(.*?)^\};", text, re.M | re.S))
    structs.pop("Control")  # holds the others
    assert {*rows} == {*structs}
    for name, body in structs.items():
        body = re.sub(r"struct \w+ \{.*?\}", "", body)  # the type of one member
        members = [re.findall(r"(\w+)(?:\[\w+\])?(?=[,;])", line) for line in body.splitlines() if "(" not in line]
        missing = {each for line in members for each in line} - rows[name] - {"reserved"}
        assert missing == set(), name


def test_the_layers_are_those_that_are_checked() -> None:
    (page,) = [text for kind, text in blocks(ARCHITECTURE) if kind == "text" and "_native" in text]
    assert [{*line.split(", ")} for line in page.splitlines()] == [layer for layer in LAYERS if layer != {""}]
