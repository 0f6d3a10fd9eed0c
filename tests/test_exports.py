"""What other programs import from `streamtrain` is there and typed."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import streamtrain
from streamtrain import errors

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
