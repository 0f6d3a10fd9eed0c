"""Losses for heavy tails, counts, quantiles and rare classes, labels that one of them does not take; optimizers;
several heads; batches accumulated to an update."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from looped import over
from numpy_predict import murmur3, read

import streamtrain
from streamtrain import EarlyStopping, EarlyStoppingTrainer, Fitted, _native
from streamtrain.columns.portable import safetensors_file
from streamtrain.compute import losses, optimizers
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.objective import Objective
from streamtrain.errors import UserMistake
from streamtrain.fitting.cached_rows import cache_rows
from streamtrain.job import Job
from streamtrain.job.mistakes import JobMistakes
from tests.fitting import example
from tests.fitting.example import columns, with_train

ROWS = 20_000
TABLES: dict[str, Any] = {
    "columns": {"a": {"standardize": True}, "b": {"standardize": True}, "y": {"role": "label"}},
    "optimizer": {"name": "adam", "learning_rate": 0.01},
    "train": {"batch_rows": 64, "round_interval": "off"},
}


def inputs(seed: int = 0) -> tuple[np.random.Generator, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    random = np.random.default_rng(seed)
    return random, random.normal(size=ROWS), random.normal(size=ROWS)


def fitted(loss: Any, y: Any, a: Any, b: Any, **label: Any) -> Any:
    tables = {**TABLES, "columns": {**TABLES["columns"], "y": {"role": "label", **label}}, "model": {"loss": loss}}
    return streamtrain.fit(tables, {"a": a, "b": b, "y": y})


def predicted(found: Any, a: Any, b: Any) -> np.ndarray[Any, Any]:
    return np.array([each["prediction"] for each in found.predict({"a": a, "b": b})], float)


def total(found: Any) -> dict[str, float]:
    figures: dict[str, float] = found.manifest.metrics["total"]
    assert all(np.isfinite(value).all() for value in figures.values()), figures
    return figures


def test_heavy_tails_pull_little() -> None:
    """Errors of a Cauchy distribution have no mean: what is learned is the line, which squares lose."""
    random, a, b = inputs()
    y = 3 * a - 2 * b + random.standard_cauchy(ROWS)
    off = {}
    for loss in ("mean_squared_error", "mean_absolute_error", "huber", "log_cosh"):
        found = fitted({"name": loss, "delta": 0.5} if loss == "huber" else loss, y, a, b)
        off[loss] = np.abs(predicted(found, a[:2000], b[:2000]) - (3 * a - 2 * b)[:2000]).mean()
        figures = total(found)
        assert loss == "mean_squared_error" or figures["loss"] < 0.9 * figures["constant_loss"], (loss, figures)
    assert off.pop("mean_squared_error") > 0.3 > max(off.values()), off


@pytest.mark.parametrize(
    ("at", "label"),
    [
        (0.1, {}), (0.9, {"standardize": True}),
        *(pytest.param(*each, marks=pytest.mark.full)
          for each in ((0.5, {}), (0.9, {}), (0.1, {"standardize": True}), (0.5, {"standardize": True}))),
    ],
)  # fmt: skip
def test_a_quantile_has_its_share_of_labels_below(at: float, label: dict[str, Any]) -> None:
    random, a, b = inputs()
    y = 10 + a + (0.5 + np.abs(b)) * random.normal(size=ROWS)
    found = fitted({"name": "quantile", "at": at}, y, a, b, **label)
    assert (y[-5000:] < predicted(found, a[-5000:], b[-5000:])).mean() == pytest.approx(at, abs=0.05)
    assert total(found)["loss"] < total(found)["constant_loss"]


def test_counts_have_a_rate() -> None:
    random, a, b = inputs()
    rate = np.exp(1 + 0.8 * a - 0.5 * b)
    found = fitted("poisson", random.poisson(rate), a, b)
    figures = total(found)
    assert figures["loss"] < figures["constant_loss"] and figures["mae"] < 0.8 * figures["constant_mae"], figures
    ratio = predicted(found, a[-2000:], b[-2000:]) / rate[-2000:]
    assert np.median(abs(np.log(ratio))) < 0.1


def rare() -> tuple[Any, Any, Any]:
    """3 % positive."""
    random, a, b = inputs()
    return (a + b + 0.5 * random.normal(size=ROWS) > 2.85).astype(int), a, b


def test_class_weights_find_a_rare_class_and_leave_figures_alone() -> None:
    """Weighted, the recall is higher; the constant prediction's figures are those of the rows as they are."""
    y, a, b = rare()
    plain = total(fitted("binary_cross_entropy", y, a, b))
    found = fitted({"name": "binary_cross_entropy", "class_weights": {"1": 30}}, y, a, b)
    weighted = total(found)
    assert weighted["recall"] > plain["recall"] + 0.1, (weighted, plain)
    same = ("constant_log_loss", "constant_accuracy", "rows", "weight")
    assert [weighted[name] for name in same] == [plain[name] for name in same]
    assert weighted["loss"] < 0.6 * weighted["constant_loss"], weighted
    assert weighted["log_loss"] > plain["log_loss"] and "loss" not in plain
    manifest = found.manifest
    assert manifest.model_spec["loss"] == {"name": "binary_cross_entropy", "class_weights": [1.0, 30.0],
                                           "label_smoothing": 0.0}  # fmt: skip
    assert manifest.job_settings["model"]["loss"]["class_weights"] == {"1": 30.0}


@pytest.mark.parametrize("loss", [{"name": "focal", "balance": 0.9}, pytest.param("focal", marks=pytest.mark.full)])
def test_focal_losses_rank_a_rare_class(loss: Any) -> None:
    y, a, b = rare()
    figures = total(fitted(loss, y, a, b))
    assert figures["auc"] > 0.97 and figures["loss"] < 0.7 * figures["constant_loss"], figures


def test_a_hinge_parts_two_classes() -> None:
    random, a, b = inputs()
    found = fitted("hinge", (a + b + 0.3 * random.normal(size=ROWS) > 0).astype(int), a, b)
    figures = total(found)
    assert figures["accuracy"] > 0.9 and figures["loss"] < 0.3 * figures["constant_loss"], figures
    low, high = predicted(found, np.array([-2.0, 2.0]), np.array([-2.0, 2.0]))
    assert low < -1 and high > 1  # margins, not probabilities


def test_smoothed_labels_keep_probabilities_from_0_and_1() -> None:
    _, a, b = inputs()
    y = np.digitize(a + b, [-1, 1])
    smoothed = fitted({"name": "softmax_cross_entropy", "label_smoothing": 0.3}, y, a, b, classes=3)
    plain = fitted("softmax_cross_entropy", y, a, b, classes=3)
    less, sure = (
        np.mean([max(each["probabilities"].values()) for each in found.predict({"a": a[:500], "b": b[:500]})])
        for found in (smoothed, plain)
    )
    assert less < sure - 0.05, (less, sure)


def test_a_negative_count_is_a_dead_letter_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    given = [{"a": 1.0, "b": 2.0, "y": y} for y in (1, 0, 2.5, -1, -1e-60, None, 1e300)]
    tables = {**TABLES, "model": {"loss": "poisson"}}
    manifest = streamtrain.fit(tables, given).manifest
    assert (manifest.rows_seen, manifest.counts.dead) == (3, 4)
    assert "row 3 at $.y: expected number not below 0, got -1" in caplog.text


@over("loss", [name for name in losses.names() if losses.label_kind(name) in ("number", "count")], sampled=True)
def test_labels_of_1e18_publish_nothing_that_is_not_finite(loss: str) -> None:
    _, a, b = inputs()
    y = np.abs(a)
    y[::50] = 1e18
    found = fitted(loss, y[:2000], a[:2000], b[:2000])
    assert total(found)["rows"] > 0
    assert all(np.isfinite(values).all() for values in found.parameters.values())


@over("name", optimizers.names(), sampled=True)
def test_every_optimizer_learns_at_its_usual_rate(name: str) -> None:
    metrics = streamtrain.fit({**example.TABLES, "optimizer": {"name": name}}, example.columns(20_000)).manifest.metrics
    assert metrics["total"]["log_loss"] < 0.6 * metrics["total"]["constant_log_loss"], metrics
    assert metrics["window"]["accuracy"] > 0.87, metrics


OF_HEADS: dict[str, Any] = {
    "columns": {
        "x": {"standardize": True}, "zone": {"kind": "category", "buckets": 8, "embed": 2},
        "late": {"role": "label", "missing": "skip_head"},
        "delay": {"role": "label", "missing": "skip_head", "standardize": True},
    },
    "model": {"layers": [{"dense": 8, "activation": "relu"}],
              "heads": {"late": {}, "delay": {"loss": "mean_squared_error", "weight": 0.3}}},
    "train": {"batch_rows": 32, "workers": 2},
}  # fmt: skip


def both(count: int, seed: int = 0) -> dict[str, Any]:
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


@pytest.fixture(scope="module")
def of_heads(forked_workers: Any) -> Fitted:
    with forked_workers.used():
        return streamtrain.fit(OF_HEADS, both(8_000))


def test_it_learns_each_head_and_publishes_its_figures(of_heads: Fitted) -> None:
    fitted, validation = of_heads, both(2_000, 1)
    there = ~np.isnan(validation["delay"])
    assert rmse(fitted, validation) < 0.4 * validation["delay"][there].std()
    there = ~np.isnan(validation["late"])
    right = (answers(fitted, validation, "late") > 0.5) == (validation["late"] > 0.5)
    assert right[there].mean() > 0.8
    assert {"late.log_loss", "delay.rmse", "late.constant_log_loss"} <= set(fitted.history.frame().columns)
    assert fitted.history[-1].published.loss > 0
    assert fitted.manifest.rows_seen == (~np.isnan(both(8_000)["late"]) | ~np.isnan(both(8_000)["delay"])).sum()


def test_a_file_of_it_says_all_that_another_program_needs(of_heads: Fitted, tmp_path: Path) -> None:
    fitted, rows = of_heads, both(50, 1)
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


@pytest.mark.parametrize(("score", "figure"), [
    (None, "loss"), ("delay.rmse", "delay.rmse"),
    pytest.param("late.auc", "late.auc", marks=pytest.mark.full),
])  # fmt: skip
def test_training_ends_by_the_score_of_all_heads_or_one(score: str | None, figure: str) -> None:
    validation = both(1_000, 1)
    stopping = EarlyStopping(score=score, held_out=validation, no_improvement=3, epochs=5)
    found = EarlyStoppingTrainer(stopping, OF_HEADS, both(2_000)).fit()
    scores = [each.score for each in found.evaluations]
    assert found.best_score == (max(scores) if figure.endswith("auc") else min(scores)) > 0
    if figure == "delay.rmse":
        assert rmse(found.best_model, validation) == pytest.approx(found.best_score, rel=1e-5)
    with pytest.raises(UserMistake, match=r"score: expected one of loss, late\.log_loss, .*delay\.rmse.* got 'rmse'"):
        EarlyStoppingTrainer(EarlyStopping(score="rmse", no_improvement=2), OF_HEADS, both(100)).fit()


def test_it_is_one_batch_of_all_their_rows_to_the_bits() -> None:
    rows = columns(3000)
    few = streamtrain.fit(with_train(batch_growth="off", batch_rows=32, accumulate=8), rows)
    many = streamtrain.fit(with_train(batch_growth="off", batch_rows=256), rows)
    alone = streamtrain.fit(with_train(batch_growth="off", batch_rows=32), rows)
    for name, array in many.parameters.items():
        assert few.parameters[name].tobytes() == array.tobytes(), name
    assert few.manifest.metrics["updates"] == many.manifest.metrics["updates"] == 6  # of each of two workers
    assert alone.manifest.metrics["updates"] == 47


def test_an_update_follows_the_mean_gradient_of_its_batches_by_their_weights() -> None:
    tables = with_train(batch_growth="off", batch_rows=32, accumulate=8, workers=1)
    tables |= {"optimizer": {"name": "sgd", "learning_rate": 1.0}, "columns": {**tables["columns"], "a": {}}}
    rows = columns(256)
    fitted = streamtrain.fit(tables, rows)
    job = Job.from_tables(tables)
    model, data = Model(job.model_spec()), cache_rows(job, rows, "rows")
    state = aligned(model.state_bytes)
    state[:] = model.initial_state(job.train.seed)
    objective = Objective(model, data.layout, data.slots, state)
    start = objective.start()
    _, gradient = objective(start)
    objective.take(start - gradient)
    blocks = model.views(state)
    for name, array in fitted.parameters.items():
        np.testing.assert_allclose(array, blocks[name], rtol=0, atol=1e-6, err_msg=name)
    assert abs(gradient).max() > 0.01


def test_a_step_takes_the_memory_of_a_tile() -> None:
    """For 16 batches of 256 rows, a network's activations alone would be 45 MB: only sums of gradients are more."""
    tables = with_train(batch_growth="off", batch_rows=256, accumulate=16)
    model = {**tables["model"], "layers": [{"dense": 512, "activation": "relu"}] * 3}
    job = Job.from_tables({**tables, "model": model})
    model = Model(job.model_spec())
    sizes = [
        model.program(_native.SlotLayout.make(rows, 1, job.schema.block_specs())).workspace_bytes
        for rows in (job.train.batch_rows, job.train.update_rows)
    ]
    parameters = sum(block.count for block in model.blocks if block.group == "parameters")
    assert sizes[1] - sizes[0] < 1.1 * 8 * parameters + 1_000_000
    assert sizes[1] - sizes[0] < 4 * 16 * 256 * 512


def test_more_rows_than_a_slot_takes_are_refused() -> None:
    with pytest.raises(JobMistakes, match="at most 1,048,576 rows an update"):
        Job.from_tables(with_train(batch_growth="off", batch_rows=4096, accumulate=257))
