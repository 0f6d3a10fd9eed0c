"""Registries read their folders; what other programs import from `streamtrain` is there and typed."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import streamtrain
from streamtrain import errors
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


ROOT = Path(__file__).resolve().parents[1]
ERRORS = {name for name, error in inspect.getmembers(errors, inspect.isclass) if error.__module__ == errors.__name__}
TYPES = (
    "Answer", "EarlyStopped", "Fitted", "FittedWindow", "HeadsAnswer", "Iteration", "Minimum", "ModelAnswer", "Moment",
    "Published", "RowAnswer", "RowError", "RunEnded", "Snapshot",
)  # fmt: skip
CALLS = (
    "EarlyStopping", "EarlyStoppingParallelTrainer", "EarlyStoppingTrainer", "Job", "LiveModel", "ParallelWrapper",
    "RecordWriter", "fit", "fit_window", "follow_snapshots", "history", "maximize", "minimize", "read_predictions",
)  # fmt: skip
EXPORTS = (*CALLS, *TYPES, *sorted(ERRORS))


def test_each_is_there_and_no_other_name() -> None:
    assert [name for name in EXPORTS if getattr(getattr(streamtrain, name, None), "__name__", None) != name] == []
    with pytest.raises(AttributeError, match="has no attribute 'Jbo'"):
        streamtrain.Jbo  # type: ignore[attr-defined]  # noqa: B018


def test_the_stub_says_where_each_comes_from() -> None:
    path = Path(streamtrain.__file__).with_suffix(".pyi")
    imports = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: node.module for node in imports for alias in node.names}
    assert homes == streamtrain._HOMES and sorted(homes) == sorted(EXPORTS)
    assert set(EXPORTS) < set(dir(streamtrain)) and set(streamtrain.__all__) == {*EXPORTS, "__version__"}


TYPED = """
from typing import assert_type

import numpy as np
from streamtrain import (
    LiveModel, ModelAnswer, RecordError, RowAnswer, RowError, StreamtrainError, read_predictions,
)

model = LiveModel("job", "localhost:9092")
assert_type(model.predict({"x": 1, "carrier": "UA"}), RowAnswer)
assert_type(model.predict({"x": 1, "carrier": "UA"}, errors="return"), RowAnswer | RecordError)
assert_type(model.predict([{"x": 1}]), list[RowAnswer])
assert_type(model.predict([{"x": 1}], errors="return"), list[RowAnswer | RecordError])
assert_type(model.predict({"x": np.zeros(3)}), list[RowAnswer])
assert_type(model.predict({"x": [1, 2]}), list[RowAnswer])
assert_type(model.answer({"x": 1}), ModelAnswer[RowAnswer])
assert_type(model.error, StreamtrainError | None)
for answer in read_predictions("job", "localhost:9092"):
    assert_type(answer.prediction, RowAnswer | list[RowAnswer | RowError] | None)
"""


@pytest.mark.full
def test_predict_and_answers_are_typed(tmp_path: Path) -> None:
    """With what mypy has found out of the package, or finds out here for its next run."""
    (tmp_path / "typed.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", str(tmp_path / "typed.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout
