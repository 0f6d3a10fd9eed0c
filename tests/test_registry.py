"""Registries read their folders: what is an entry, its name and help by its text, and what an unknown name gets."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from streamtrain.errors import UserMistake
from streamtrain.registry import Registry, registries


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Registry:
    """A registry of two entries and a file that is none."""
    name = f"made_{abs(hash(request.node.nodeid))}"
    package = tmp_path / name
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "one_thing.py").write_text('HELP = "the " "first"\n')
    (package / "other.py").write_text('"""The second.\n\nMore."""\nHELP: str = str(2)\nORDER = 7\n')
    (package / "shared.py").write_text('"""HELP of no entry."""\nTEXT = "HELP = 1"\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    return Registry(name, "a thing", dashed=True)


def test_an_entry_is_a_file_with_the_registrys_word(made: Registry) -> None:
    assert made.names() == ["one_thing", "other"]
    assert made.describe() == {"one_thing": "the first", "other": "The second."}
    assert made.constants("other") == {"__doc__": "The second.\n\nMore.", "ORDER": 7}
    assert not [name for name in sys.modules if name.startswith(f"{made.package}.")]
    assert made.get("one-thing") is made.get("one_thing")


def test_an_unknown_name_gets_those_there_are_and_the_nearest(made: Registry) -> None:
    for given in ("one-think", "shared", "../other"):
        with pytest.raises(UserMistake, match="a thing: expected one of one-thing, other, got") as refused:
            made.get(given)
        assert ("did you mean 'one-thing'" in str(refused.value)) == (given == "one-think")


def test_every_entry_has_a_line_of_help_and_can_be_imported() -> None:
    wrong = []
    for folder, registry in registries().items():
        assert registry.names() and registry.package.endswith(f".{folder}")
        wrong += [
            (folder, name, text) for name, text in registry.describe().items()
            if not text or "\n" in text or not hasattr(registry.get(name), registry.word)
        ]  # fmt: skip
    assert wrong == []


def test_the_names_and_help_of_all_registries_import_no_entry() -> None:
    code = """
import sys
from streamtrain.registry import registries
names = [f"{registry.package}.{name}" for registry in registries().values() for name in registry.describe()]
sys.exit(str(imported) if (imported := sys.modules.keys() & names) else 0)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", registries()["roles"].names())
def test_every_process_role_takes_a_plain_config(name: str) -> None:
    role = registries()["roles"].get(name)
    assert dataclasses.is_dataclass(role.Config)
    config, *others = inspect.signature(role.run).parameters.values()
    assert config.name == "config"
    assert [other.name for other in others if other.default is inspect.Parameter.empty] == []
    assert inspect.signature(role.run).return_annotation == "int"  # the exit code
