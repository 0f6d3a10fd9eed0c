"""Training that ends when it no longer improves: where, why, and with which model."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from looped import over

import streamtrain
from streamtrain import EarlyStopping, EarlyStoppingTrainer, Fitted
from streamtrain.errors import CheckFailed, SnapshotError, UserMistake
from tests.fitting.example import TABLES, columns, dicts, same_bits, with_train
from tests.fitting.test_files import written

HELD_OUT = columns(2000, seed=9)


def probabilities(model: Fitted, rows: Any) -> Any:
    return np.array([answer["prediction"] for answer in model.predict(rows)])


def log_loss(model: Fitted) -> float:
    p, y, w = probabilities(model, HELD_OUT), HELD_OUT["y"], HELD_OUT["w"]
    return float(-(w * np.log(np.where(y, p, 1 - p))).sum() / w.sum())


def trained(rows: Any, job: Any = TABLES, /, **settings: Any) -> Any:
    return EarlyStoppingTrainer(EarlyStopping(**settings), job, rows).fit()


def test_it_ends_when_held_out_rows_are_no_longer_predicted_better() -> None:
    """On few rows, of which it learns too much."""
    fast = {**TABLES, "optimizer": {"name": "adam", "learning_rate": 0.05}}
    found = trained(columns(200), fast, no_improvement=4, held_out=HELD_OUT, epochs=300)
    assert found.reason == "no_improvement" and found.details.startswith("4 evaluations were not better than")
    scores = [each.score for each in found.evaluations]
    assert [each.epoch for each in found.evaluations] == list(range(1, len(scores) + 1)) and len(scores) < 300
    assert found.best_score == min(scores) and scores.index(found.best_score) == len(scores) - 5
    assert found.best_epoch == len(scores) - 4 and found.scores[found.best_version] == found.best_score
    assert abs(log_loss(found.best_model) - found.best_score) < 1e-6
    assert abs(log_loss(found.model) - scores[-1]) < 1e-6 and found.best_model.version < found.model.version
    assert same_bits(found.best_model, streamtrain.fit(fast, columns(200), epochs=found.best_epoch))
    assert found.model.stopped == f"no_improvement: {found.details}"


@pytest.mark.parametrize(
    ("score", "forms"),
    [
        ("log_loss", ["arrays", "rows", "file"]), ("auc", ["rows"]), ("accuracy", ["file"]),
        *(pytest.param(score, ["arrays", "rows", "file"], marks=pytest.mark.full) for score in ("auc", "accuracy")),
    ],
)  # fmt: skip
def test_the_score_of_held_out_rows_in_every_form(tmp_path: Path, score: str, forms: list[str]) -> None:
    from sklearn.metrics import roc_auc_score  # slow to import

    path = written(tmp_path / "held out.csv", dicts(HELD_OUT))
    held_out = {"arrays": HELD_OUT, "rows": dicts(HELD_OUT), "file": path}
    found = [trained(columns(600), epochs=2, score=score, held_out=held_out[form]) for form in forms]
    assert len({each.best_score for each in found}) == 1 and found[0].reason == "epochs"
    p, y, w = probabilities(found[0].best_model, HELD_OUT), HELD_OUT["y"], HELD_OUT["w"]
    expected = {
        "log_loss": log_loss(found[0].best_model),
        "auc": roc_auc_score(y, p, sample_weight=w),
        "accuracy": float((w * ((p >= 0.5) == y)).sum() / w.sum()),
    }
    assert abs(found[0].best_score - expected[score]) < (1e-3 if score == "auc" else 1e-6)


def test_the_progressive_score_is_that_of_the_rows_since_the_evaluation_before() -> None:
    given = columns(3000)
    found = trained(given, epochs=4, every_epochs=2)
    half = streamtrain.fit(TABLES, given, epochs=2).manifest.metrics["total"]["log_loss"]
    whole = streamtrain.fit(TABLES, given, epochs=4).manifest.metrics["total"]["log_loss"]
    first, second = (each.score for each in found.evaluations)
    assert abs(first - half) < 1e-12 and abs(second - (2 * whole - half)) < 1e-12


def test_the_score_of_a_number_is_its_rmse() -> None:
    x = np.linspace(-1, 1, 1000)
    job = {"columns": {"x": {}, "y": {"role": "label"}}, "model": {"loss": "mean_squared_error"}}
    found = trained({"x": x, "y": 3 * x}, job, epochs=3, held_out={"x": x, "y": 3 * x})
    error = probabilities(found.best_model, {"x": x}) - 3 * x
    assert abs(found.best_score - math.sqrt((error**2).mean())) < 1e-6


THIRD = SimpleNamespace(name="third", met=lambda seen: "enough" if len(seen) == 3 else "")
OWN = {"conditions": [THIRD], "score": lambda model: model.manifest.rows_seen, "minimise": False}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"best_score": 0.9, "score": "auc"}, "best_score"),
        ({"rows": 2500}, "rows"),
        ({"epochs": 3}, "epochs"),
        ({"time": "1ms"}, "time"),
        ({"epochs": 9, "score": lambda model: math.nan if model.version > 3 else 1.0}, "invalid_score"),
        (OWN, "third"),
    ],
)
def test_why_it_ends(settings: dict[str, Any], reason: str) -> None:
    found = trained(columns(1000), **settings)
    assert found.reason == reason and found.details, found
    assert settings is not OWN or (found.details, found.best_score, found.best_epoch) == ("enough", 3000, 3)


def test_rows_that_come_once_end_it() -> None:
    found = trained(iter(dicts(columns(1000))), no_improvement=50)
    assert found.reason == "end_of_rows" and found.details == "1,000 rows are trained"


def test_the_best_model_is_saved(tmp_path: Path) -> None:
    found = trained(columns(200), no_improvement=2, held_out=HELD_OUT, epochs=300, save_to=tmp_path / "best")
    loaded = Fitted.load(tmp_path / "best")
    assert loaded.digest == found.best_model.digest and same_bits(loaded, found.best_model)
    assert loaded.predict(HELD_OUT) == found.best_model.predict(HELD_OUT)
    (model,) = (tmp_path / "best").glob("*.safetensors")
    model.write_bytes(model.read_bytes()[:-1] + b"\x07")
    with pytest.raises(SnapshotError, match="the digests differ"):
        Fitted.load(tmp_path / "best")
    with pytest.raises(UserMistake, match=r"nowhere.manifest.msgpack: cannot be read"):
        Fitted.load(tmp_path / "nowhere")


def test_a_save_that_is_killed_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before each of the names that it gives, and after both."""
    before, after = (streamtrain.fit(TABLES, columns(200, seed)) for seed in (1, 2))
    for writes in range(3):
        folder, replaced = tmp_path / str(writes), []
        before.save(folder)

        def replace(*names: Any, most: int = writes, replaced: list[Any] = replaced) -> None:
            if len(replaced) == most:
                raise GeneratorExit  # which nobody catches
            replaced.append(os.rename(*names))

        with monkeypatch.context() as patch, suppress(GeneratorExit):
            patch.setattr("os.replace", replace)
            after.save(folder)
        assert Fitted.load(folder).digest == (after if writes == 2 else before).digest, writes
        assert len(list(folder.glob("*.safetensors"))) == (2 if writes == 1 else 1), writes
        after.save(folder)
        assert Fitted.load(folder).digest == after.digest and len(list(folder.iterdir())) == 2, writes


@over(
    ("settings", "message"),
    [
        ({}, "expected a condition that ends training: no_improvement, .* got none"),
        ({"no_improvement": 0}, "no_improvement: expected a whole number from 1, got 0"),
        ({"least_improvement": -1}, "least_improvement: expected a number from 0, got -1"),
        ({"epochs": 1, "time": "soon"}, "time: expected a duration .* got 'soon'"),
        ({"epochs": 1, "best_score": math.nan}, "best_score: expected a finite number, got nan"),
        ({"epochs": 1, "best_score": "0.6"}, "best_score: expected a finite number, got '0.6'"),
        ({"epochs": 1, "minimise": "no"}, "minimise: expected True, False or None, got 'no'"),
        ({"epochs": 1, "invalid_score": "no"}, "invalid_score: expected True or False, got 'no'"),
        ({"epochs": 1, "save_to": 3}, "save_to: expected a folder's path, got 3"),
        ({"epochs": 1, "conditions": 3}, r"conditions: expected objects with name and met\(\), got int"),
        ({"epochs": 1, "conditions": [3]}, r"conditions: expected objects with name and met\(\), got int"),
        ({"epochs": 1, "score": "rmse"}, "score: expected one of log_loss, .* or a function of the model, got 'rmse'"),
        ({"epochs": 1, "score": "calibration"}, "score: expected one of .* got 'calibration'"),
        ({"epochs": 1, "held_out": [{"a": "x"}]}, "row 0 at .*expected number"),
        ({"epochs": 1, "held_out": []}, "held_out: expected at least one row, got none"),
        ({"epochs": 1, "held_out": HELD_OUT, "score": lambda model: 0}, "held_out: expected none beside a function"),
        ({"epochs": 2, "score": lambda model: math.nan, "invalid_score": False}, "score that is finite, got nan, nan"),
    ],
)
def test_mistakes(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((UserMistake, CheckFailed), match=message):
        trained(columns(100), **settings)


def test_what_is_no_early_stopping() -> None:
    with pytest.raises(UserMistake, match="early_stopping: expected an EarlyStopping, got dict"):
        EarlyStoppingTrainer({}, TABLES, columns(10))  # type: ignore[arg-type]


def test_a_pytorch_module_is_scored_as_it_predicts(own_workers: None) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")

    def net(inputs: Any) -> Any:
        layers = (torch.nn.Linear(inputs.width, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Dropout(0.5))
        return torch.nn.Sequential(*layers, torch.nn.Linear(8, inputs.outputs))

    stopping = EarlyStopping(no_improvement=2, epochs=20, held_out=HELD_OUT)
    found = EarlyStoppingTrainer(stopping, {**TABLES, "model": {}}, columns(2000), module=net).fit()
    assert abs(log_loss(found.best_model) - found.best_score) < 1e-6


def test_early_stopping_of_a_job_file_ends_no_fit() -> None:
    job = with_train(early_stopping={"rows": 1})
    assert same_bits(streamtrain.fit(job, columns(500)), streamtrain.fit(TABLES, columns(500)))
