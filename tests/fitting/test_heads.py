"""Several heads in a fit: what they learn, their file, early stopping by one head or all, and the loss of all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy_predict import murmur3, read

import streamtrain
from streamtrain import EarlyStopping, EarlyStoppingTrainer, Fitted
from streamtrain.columns.portable import safetensors_file
from streamtrain.errors import UserMistake

TABLES: dict[str, Any] = {
    "columns": {
        "x": {"standardize": True}, "zone": {"kind": "category", "buckets": 8, "embed": 2},
        "late": {"role": "label", "missing": "skip_head"},
        "delay": {"role": "label", "missing": "skip_head", "standardize": True},
    },
    "model": {"layers": [{"dense": 8, "activation": "relu"}],
              "heads": {"late": {}, "delay": {"loss": "mean_squared_error", "weight": 0.3}}},
    "train": {"batch_rows": 32, "workers": 2},
}  # fmt: skip


def columns(count: int, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    x, zone = random.normal(3, 2, count), random.choice(["a", "b", "c"], count)
    delay = 5 * x + 10 * (zone == "b") + random.normal(0, 1, count)
    late = (delay + random.normal(0, 5, count) > 20).astype(float)
    delay[random.random(count) < 0.6] = np.nan
    late[random.random(count) < 0.2] = np.nan
    return {"x": x, "zone": zone, "late": late, "delay": delay}


def answers(model: Fitted, rows: dict[str, Any], head: str) -> Any:
    inputs = {name: rows[name] for name in ("x", "zone")}
    return np.array([answer["prediction"][head] for answer in model.predict(inputs)])


def rmse(model: Fitted, rows: dict[str, Any]) -> float:
    return float(np.sqrt(np.nanmean((answers(model, rows, "delay") - rows["delay"]) ** 2)))


def test_it_learns_each_head_and_publishes_the_weighted_sum_as_the_loss() -> None:
    fitted = streamtrain.fit(TABLES, columns(8_000))
    held_out = columns(2_000, 1)
    there = ~np.isnan(held_out["delay"])
    assert rmse(fitted, held_out) < 0.4 * held_out["delay"][there].std()
    there = ~np.isnan(held_out["late"])
    right = (answers(fitted, held_out, "late") > 0.5) == (held_out["late"] > 0.5)
    assert right[there].mean() > 0.8
    assert {"late.log_loss", "delay.rmse", "late.constant_log_loss"} <= set(fitted.history.frame().columns)
    total = fitted.manifest.metrics["total"]
    of_heads = total["late.log_loss"] * total["late.weight"] + 0.3 * total["delay.loss"] * total["delay.weight"]
    assert total["loss"] == pytest.approx(of_heads / total["weight"], rel=1e-6)
    assert fitted.history[-1].published.loss > 0
    assert fitted.manifest.rows_seen == (~np.isnan(columns(8_000)["late"]) | ~np.isnan(columns(8_000)["delay"])).sum()


def test_a_file_of_it_says_all_that_another_program_needs(tmp_path: Path) -> None:
    fitted, rows = streamtrain.fit(TABLES, columns(4_000)), columns(50, 1)
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_file(fitted.manifest, bytes.fromhex(fitted.digest), fitted.payload))
    metadata, tensors = read(path)
    layers = {layer["name"]: layer for layer in json.loads(metadata["layers"])}
    statistics = json.loads(metadata["statistics"])

    def of(block: str, row: int = 0) -> tuple[float, float]:
        named = dict(zip(statistics[block], tensors[block][row], strict=True))
        return named["mean"], np.sqrt(named["squares"] / named["count"])

    mean, deviation = of("standardize.numbers")
    zones = {zone: tensors["zone.embedding"][murmur3(zone.encode(), murmur3(b"zone", 0)) % 8] for zone in "abc"}
    x = np.column_stack([(rows["x"] - mean) / deviation, [zones[zone] for zone in rows["zone"]]])
    hidden = np.maximum(x @ tensors["dense0.weight"] + tensors["dense0.bias"], 0)
    for head in json.loads(metadata["heads"]):
        layer = layers[head["output"]]
        assert layer["reads"] == ["dense0"]
        z = (hidden @ tensors[layer["weight"]] + tensors[layer["bias"]])[:, 0]
        if head["name"] == "late":
            no, yes = tensors[head["blocks"]["label.classes"]] + 0.5
            expected = 1 / (1 + np.exp(-z - np.log(yes / no)))
        else:
            mean, deviation = of(head["blocks"]["standardize.label"])
            expected = z * deviation + mean
        np.testing.assert_allclose(answers(fitted, rows, head["name"]), expected, rtol=1e-4)
    assert "loss" not in metadata and [head["name"] for head in json.loads(metadata["heads"])] == ["late", "delay"]


@pytest.mark.parametrize(("score", "figure"), [(None, "loss"), ("delay.rmse", "delay.rmse"), ("late.auc", "late.auc")])
def test_training_ends_by_the_score_of_all_heads_or_one(score: str | None, figure: str) -> None:
    held_out = columns(1_000, 1)
    stopping = EarlyStopping(score=score, held_out=held_out, no_improvement=3, epochs=5)
    found = EarlyStoppingTrainer(stopping, TABLES, columns(2_000)).fit()
    scores = [each.score for each in found.evaluations]
    assert found.best_score == (max(scores) if figure.endswith("auc") else min(scores)) > 0
    if figure == "delay.rmse":
        assert rmse(found.best_model, held_out) == pytest.approx(found.best_score, rel=1e-5)
    with pytest.raises(UserMistake, match=r"score: expected one of loss, late\.log_loss, .*delay\.rmse.* got 'rmse'"):
        EarlyStoppingTrainer(EarlyStopping(score="rmse", no_improvement=2), TABLES, columns(100)).fit()
