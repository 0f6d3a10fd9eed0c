"""The pages of docs/ are run as a reader would, each in an empty folder; what they name exists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer.main

from streamtrain.cli.app import app
from tests.docs.page import ROOT, Shell, blocks, spans

PAGES = sorted((ROOT / "docs").glob("*.md"))
OPTIONAL = ("torch",)  # pages of packages that the tests do not ask for


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_page_runs(page: Path, kafka: Any, tmp_path: Path) -> None:
    if page.stem in OPTIONAL:
        pytest.importorskip(page.stem, reason=f"not installed (extra {page.stem})")
    name = kafka.fresh_name("taxi")
    host, _, port = kafka.bootstrap.rpartition(":")
    assert host in ("127.0.0.1", "localhost")
    shell = Shell(tmp_path, int(port))
    try:
        for kind, text in blocks(page):
            assert kind in ("sh", "python", "toml", "yaml"), kind
            if kind in ("sh", "python"):
                shell.run(kind, _renamed(text, name))
    finally:
        shell.end()


def _renamed(text: str, name: str) -> str:
    """The pages' job under a name of its own: tests share a Kafka."""
    text = re.sub(r"\btaxi\.(toml|records|requests|predictions)\b", rf"{name}.\1", text)
    text = re.sub(r"/(predict|v2/models)/taxi\b", rf"/\1/{name}", text)
    return text.replace('"taxi"', f'"{name}"')


def commands(page: Path) -> Iterator[str]:
    for kind, text in blocks(page):
        yield from (line for line in text.splitlines() if kind == "sh" and line.startswith("streamtrain "))
    yield from (span for span in spans(page) if re.match(r"(streamtrain|train|produce) \S", span))


def options_of(name: str) -> set[str]:
    """The options of a command, or of all below it."""
    command = typer.main.get_command(import_module(f"streamtrain.cli.commands.{name.replace('-', '_')}").app)
    below = getattr(command, "commands", {"": command})
    return {option for entry in below.values() for parameter in entry.params for option in parameter.opts}


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_commands_files_and_links_of_a_page_exist(page: Path) -> None:
    root = typer.main.get_command(app)
    for command in commands(page):
        name, *words = [word for word in shlex.split(command, comments=True) if word != "streamtrain"]
        assert name in root.list_commands(None), command
        assert {word.split("=")[0] for word in words if word.startswith("-")} <= options_of(name), command
    for span in spans(page):
        if re.match(r"(native|compute|topics|streamtrain|tests|examples|deploy|docs)/", span) and "x." not in span:
            assert (ROOT / span).exists(), span
    for target in re.findall(r"\]\(([\w./-]+)\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_readme_names_every_page_and_many_commands() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert [page.name for page in PAGES if f"docs/{page.name}" not in text] == []
    assert len(list(commands(ROOT / "README.md"))) > 20
