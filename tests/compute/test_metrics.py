"""Figures from score blocks against scikit-learn on the same rows, and those of several heads over one network; the
window of the progressive quality."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute import curves, losses, metrics
from streamtrain.compute.confusion import by_class, of_the_positive
from streamtrain.compute.evaluator import Evaluator
from streamtrain.compute.metrics import auc, is_lower_better, numbers, ranked, summary, usual
from streamtrain.compute.model import Model
from streamtrain.compute.moments import MOMENTS as NAMES
from streamtrain.compute.ops.score_binary import BINS, MOMENTS
from streamtrain.compute.quality import Quality
from streamtrain.compute.state import block_view
from tests.compute import shapes
from tests.oracles.ops import tally
from tests.oracles.ops.scores import place


@pytest.fixture(scope="module", autouse=True)
def _scikit_learn() -> None:
    """Two seconds to import, which each process that only collects is spared."""
    global sk
    import sklearn.metrics as sk


def trained(rigged: Any, batches: int = 10, labels_below: int = 0) -> tuple[dict[str, Any], Any, Any, Any]:
    """Figures of batches that were predicted before their steps; and their predictions, labels and weights."""
    plan, seen = rigged.plan(), []
    for _ in range(batches):
        rigged.fill()
        if labels_below:
            rigged.blocks["label"][:200, 0] = rigged.rng.integers(0, labels_below, 200)
        plan.predict(rigged.address)
        counts = rigged.blocks["weight"][:, 0] > 0
        blocks = plan.output(), rigged.blocks["label"][:, 0], rigged.blocks["weight"][:, 0].astype(float)
        seen.append([block[counts].copy() for block in blocks])
        rigged.step(plan)
    return summary(rigged.model.scores(rigged.share)), *map(np.concatenate, zip(*seen, strict=True))


def constant(labels: Any, weights: Any, classes: int) -> tuple[float, float]:
    """Log loss and accuracy of the constant prediction, each row scored before it is counted."""
    seen, loss, right = np.zeros(classes), 0.0, 0.0
    for label, weight in zip(labels, weights, strict=True):
        loss -= weight * np.log((seen[label] + 0.5) / (seen.sum() + classes / 2))
        right += weight * (seen.argmax() == label)
        seen[label] += weight
    return loss / weights.sum(), right / weights.sum()


def test_binary(rig: Any, spec: Any) -> None:
    figures, p, y, w = trained(rig(spec(), rows=200, capacity=256))
    p = p[:, 0].astype(float)
    assert figures["weight"] == pytest.approx(w.sum())
    assert figures["log_loss"] == pytest.approx(sk.log_loss(y, p, sample_weight=w), rel=1e-5)
    assert figures["auc"] == pytest.approx(sk.roc_auc_score(y, p, sample_weight=w), abs=1e-3)
    assert figures["accuracy"] == pytest.approx(sk.accuracy_score(y, p >= 0.5, sample_weight=w), rel=1e-6)
    assert figures["average_precision"] == pytest.approx(sk.average_precision_score(y, p, sample_weight=w), abs=5e-3)
    for name, scored in (("precision", sk.precision_score), ("recall", sk.recall_score), ("f1", sk.f1_score)):
        assert figures[name] == pytest.approx(scored(y, p >= 0.5, sample_weight=w), rel=1e-6), name
    exact = sk.confusion_matrix(y, p >= 0.5, sample_weight=w)
    np.testing.assert_allclose(figures["confusion_matrix"], exact, rtol=1e-9)
    assert figures["calibration"] == pytest.approx((w * p).sum() / (w * y).sum(), rel=1e-4)
    part = np.minimum((p * 10).astype(int), 9)
    off = sum(abs((w * (p - y))[part == each].sum()) for each in range(10)) / w.sum()
    assert figures["calibration_error"] == pytest.approx(off, abs=2e-3)
    assert figures["normalized_entropy"] == pytest.approx(figures["log_loss"] / figures["constant_log_loss"])
    assert figures["rows"] == len(y) and isinstance(figures["rows"], int)
    expected = constant(y.astype(int), w, classes=2)
    assert figures["constant_log_loss"] == pytest.approx(expected[0], rel=1e-9)
    assert figures["constant_accuracy"] == pytest.approx(expected[1], rel=1e-9)


@over("standardized", [False, True])
@over(
    ("loss", "settings", "of"),
    [
        ("mean_squared_error", {}, np.square),
        ("mean_absolute_error", {}, np.abs),
        ("huber", {"delta": 1e6}, lambda error: error * error / 2),
        ("quantile", {"at": 0.9}, lambda error: np.maximum(0.1 * error, -0.9 * error)),
    ],
)
def test_regression(rig: Any, spec: Any, standardized: bool, loss: str, settings: Any, of: Any) -> None:
    """Also the loss is in the label's unit, whatever it is minimised in."""
    figures, p, y, w = trained(
        rig(spec(loss, settings=settings, standardize_label=standardized), rows=200, capacity=256)
    )
    error = (p[:, 0] - y).astype(float)
    assert figures["loss"] == pytest.approx((w * of(error)).sum() / w.sum(), rel=1e-4)
    assert figures["mae"] == pytest.approx((w * abs(error)).sum() / w.sum(), rel=1e-5)
    assert figures["rmse"] == pytest.approx(np.sqrt((w * error**2).sum() / w.sum()), rel=1e-5)
    y = y.astype(float)
    assert figures["r2"] == pytest.approx(sk.r2_score(y, y + error, sample_weight=w), rel=1e-5)
    before = np.array([0, *np.cumsum(w * y)[:-1]]) / np.array([1, *np.cumsum(w)[:-1]])   # the mean of the rows before
    off = np.append(0, (before - y)[1:])   # the first of all has no prediction
    assert figures["constant_loss"] == pytest.approx((w * of(off)).sum() / w.sum(), rel=1e-4)
    assert figures["constant_mae"] == pytest.approx((w * abs(off)).sum() / w.sum(), rel=1e-6)
    assert figures["constant_rmse"] == pytest.approx(np.sqrt((w * off**2).sum() / w.sum()), rel=1e-6)
    assert figures["rows"] == len(y)


def test_classes(rig: Any, spec: Any) -> None:
    figures, p, y, w = trained(rig(spec("softmax_cross_entropy"), rows=200, capacity=256))
    expected = sk.log_loss(y, p.astype(float), sample_weight=w, labels=[0, 1, 2])
    assert figures["log_loss"] == pytest.approx(expected, rel=1e-4)
    assert figures["accuracy"] == pytest.approx(sk.accuracy_score(y, p.argmax(1), sample_weight=w))
    expected = constant(y, w, classes=3)
    assert figures["constant_log_loss"] == pytest.approx(expected[0], rel=1e-9)
    assert figures["constant_accuracy"] == pytest.approx(expected[1], rel=1e-9)


@over("loss", losses.names())
@over(("weighted", "rate"), [(False, 0.5), (True, 0.02)])
def test_the_constant_prediction_does_not_depend_on_batches_or_rounds(
    rig: Any, spec: Any, loss: str, weighted: bool, rate: float
) -> None:
    """A row is scored before it is counted, after all rows before it: in its batch, its round and the rounds before."""
    kind, rng = losses.label_kind(loss), np.random.default_rng(2)
    labels = (rng.random(1024) < rate) + (rng.random(1024) < 0.1) * (kind != "binary")
    weights = rng.uniform(0.1, 3, 1024) if weighted else np.ones(1024)
    found = []
    for rows, batches_a_round in ((1024, 1), (256, 2), (8, 100), (1, 7)):
        rigged = rig(spec(loss=loss, standardize_label=False), rows=rows, capacity=rows)
        plan = rigged.plan()
        for at in range(0, 1024, rows):
            rigged.blocks["label"][:, 0], rigged.blocks["weight"][:, 0] = labels[at:][:rows], weights[at:][:rows]
            rigged.step(plan)
            if at // rows % batches_a_round == batches_a_round - 1:   # the sums of a round become the next one's base
                merge(rigged)
        merge(rigged)
        figures = summary(rigged.model.scores(rigged.base))
        found.append({name: value for name, value in figures.items() if name.startswith("constant_")})
        assert figures["rows"] == 1024
    for other in found[1:]:
        assert other == pytest.approx(found[0], rel=1e-11)
    if kind in ("binary", "class"):
        expected = constant(labels.astype(int), weights.astype(np.float32).astype(float), 2 + (kind == "class"))
        assert found[0]["constant_log_loss"] == pytest.approx(expected[0], rel=1e-11)
        assert found[0]["constant_accuracy"] == pytest.approx(expected[1], rel=1e-11)


def merge(rigged: Any) -> None:
    """The share of a round added to the base, as averaging does it."""
    for block in rigged.model.blocks:
        if block.rule == "sum":
            base, share = (block_view(block, part, block.part_offset) for part in (rigged.base, rigged.share))
            base += share
    rigged.share[:] = 0


SEED = 5


def logits(base_rate: float, spread: float, kind: str, rows: int, rng: Any) -> tuple[Any, Any]:
    """Logits of this spread around a base rate's, and labels: as the logits say, or by a sharper truth."""
    center = np.log(base_rate / (1 - base_rate))
    z = (center + spread * rng.standard_normal(rows)).astype(np.float32)
    truth = z if kind == "calibrated" else center + 1.5 * (z - center) / spread + rng.standard_normal(rows)
    return z, (rng.random(rows) < 1 / (1 + np.exp(-truth.astype(float)))).astype(np.float32)


BASE_RATES, SPREADS = (1e-5, 1e-4, 1e-2, 0.5, 1 - 1e-5), (0.05, 0.2, 1, 5)
CURVES = [  # in an order of which each sixth has every base rate, every spread and every kind
    (base_rate, spread, kind, weighted)
    for kind, weighted in (("calibrated", True), ("calibrated", False), ("sharper", True))
    for spread in SPREADS for base_rate in BASE_RATES
]  # fmt: skip


@over(("base_rate", "spread", "kind", "weighted"), CURVES, sampled=True)
def test_auc_is_that_of_scikit_learn_to_1e_3(base_rate: float, spread: float, kind: str, weighted: bool) -> None:
    """1024 bins of the probability gave 0.727 where it is 0.848 at a base rate of 1e-4."""
    rows, rng = 100_000 if 1e-3 < base_rate < 1 - 1e-3 else 400_000, np.random.default_rng(SEED)
    z, y = logits(base_rate, spread, kind, rows, rng)
    weight = rng.uniform(0.1, 4, rows).astype(np.float32) if weighted else np.ones(rows, np.float32)
    histogram, step = np.zeros((2, BINS, MOMENTS)), _native.StepBlock()
    step.active_rows = rows
    _native.call_kernel("score_binary", "", [
        rows, z, np.zeros(rows, np.float32), y, weight, np.zeros(2), step, np.zeros(4), np.zeros(2), np.zeros(2),
        np.zeros(1, np.int64), histogram,
    ])   # fmt: skip
    assert auc(histogram) == pytest.approx(sk.roc_auc_score(y, z, sample_weight=weight), abs=1e-3)


def test_auc_of_logits_that_are_huge_equal_or_alone() -> None:
    def of(z: list[float], y: list[int]) -> float:
        bins, x = place(np.array(z, np.float32))
        histogram = np.zeros((2, BINS, MOMENTS))
        for power in range(MOMENTS):
            np.add.at(histogram[..., power], (np.array(y), bins), x.astype(float) ** power)
        return auc(histogram)

    assert of([-50, 50, 1e30, -1e30, np.inf], [0, 1, 1, 0, 1]) == 1
    for z in (0.0, 3.0, -7.123, 11.99, -30.0):   # a model that has not learned yet gives every row the same
        assert of([z] * 7, [0, 1, 0, 1, 0, 0, 0]) == pytest.approx(0.5)
    assert of([1.001, 1.009], [0, 1]) > 0.6 and of([1.001, 1.009], [1, 0]) < 0.4   # in one bin
    assert of([-40, -20], [0, 1]) == 1 and of([1, 2], [1, 1]) == 0.5


def test_nothing_seen(rig: Any, spec: Any) -> None:
    rigged = rig(spec())
    assert summary(rigged.model.scores(rigged.share)) == {"rows": 0, "weight": 0.0}
    assert auc(np.zeros((2, BINS, MOMENTS))) == 0.5
    assert metrics.CONSTANT == "constant_"


@over(("base_rate", "spread"), [(0.5, 0.05), (0.01, 0.05), (0.001, 0.3), (1e-5, 0.05), (1e-5, 1.0), (0.2, 10.0)])
def test_curves_are_those_of_scikit_learn(base_rate: float, spread: float) -> None:
    rng = np.random.default_rng(3)
    z = (rng.normal(0, spread, 100_000) + np.log(base_rate / (1 - base_rate))).astype(np.float32)
    p = 1 / (1 + np.exp(-z.astype(np.float64)))
    y, w = (rng.random(len(z)) < p).astype(np.int64), rng.uniform(0.5, 2, len(z))
    y[-1] = 1   # one at the least
    histogram = np.zeros((2, BINS, MOMENTS))
    bins, x = place(z)
    for power in range(MOMENTS):
        np.add.at(histogram[..., power], (y, bins), w * x.astype(np.float64) ** power)
    assert auc(histogram) == pytest.approx(sk.roc_auc_score(y, z, sample_weight=w), abs=1e-3)
    if base_rate >= (0.001 if spread >= 0.3 else 0.01):   # docs/model.md
        exact = sk.average_precision_score(y, z, sample_weight=w)
        assert curves.average_precision(histogram[..., 0]) == pytest.approx(exact, rel=0.05)
    found = curves.calibration(histogram)
    assert found["calibration"] == pytest.approx((w * p).sum() / (w * y).sum(), rel=2e-3)
    assert found["calibration_error"] < 0.02


def tally_of(z: Any, y: Any, w: Any, into: Any = None, base: Any = None) -> Any:
    """The tally of a batch on top of one."""
    into, base = (tally.empty() if each is None else each.copy() for each in (into, base))
    _native.call_kernel("tally", "", [len(z), z, y, w, base, into])
    return into


@over("base_rate", [1e-5, 1e-3, 0.3])
@over("distinct", [2, 40, tally.ENTRIES])
def test_few_distinct_logits_have_the_exact_figures(base_rate: float, distinct: int) -> None:
    """Only this finds ties that count 0 or 1 of a pair, a threshold too many, and a border of the tally that is off."""
    rng, rows = np.random.default_rng(distinct), 60_000
    values = np.concatenate([rng.normal(0, 0.02, distinct - 2), [0.0, 3.0]]).astype(np.float32)
    at = np.append(np.arange(distinct), rng.integers(0, distinct, rows - distinct))
    z, w = values[at], rng.uniform(0.1, 4, rows).astype(np.float32)
    y = (rng.random(rows) < base_rate * (1 + at / distinct)).astype(np.float32)
    y[:3], w[5:9], z[at == distinct - 2] = 1, 0, np.where(np.arange((at == distinct - 2).sum()) % 2, 0.0, -0.0)
    found = None
    for first in range(0, rows, 1999):
        found = tally_of(*(each[first:][:1999] for each in (z, y, w)), found)
    exact = [score(y, z, sample_weight=w) for score in (sk.roc_auc_score, sk.average_precision_score)]
    assert _native.binary_curves(found) == pytest.approx(exact, rel=1e-10)
    assert found[0, 0] == len(np.unique(z[w > 0])) and not found[int(found[0, 0]) + 1 :].any()
    one = np.ones(1, np.float32)
    full = tally_of(one * 7, one, one, tally_of(-one * 7, one, one, found))
    if distinct == tally.ENTRIES:
        marked = tally.of_marks(np.append(values + np.float32(0), [7, -7]))
        assert np.array_equal(full, marked) and _native.binary_curves(full) == (-1, -1)
        again = tally_of(one, one, one, None, full)   # the window's is full: a round's is so from its start
        assert np.array_equal(tally_of(-one, one, one, again, full), tally.of_marks(np.array([1, -1])))
        assert np.array_equal(tally_of(one * 3, one, one * 0, again, full), again)
    else:
        assert full[0, 0] == found[0, 0] + 2


def test_curves_of_nothing_and_of_one_label() -> None:
    nothing = np.zeros((2, BINS, MOMENTS))
    none = of_the_positive(curves.at_half(nothing[..., 0]))
    assert none == {"precision": 0, "recall": 0, "f1": 0, "confusion_matrix": [[0, 0], [0, 0]]}
    assert curves.average_precision(nothing[..., 0]) == 0 and curves.calibration(nothing) == {"calibration_error": 0}
    positive = nothing.copy()
    positive[1, BINS - 1] = 1, 0.5, 0.25
    all_right = of_the_positive(curves.at_half(positive[..., 0]))
    assert all_right == {"precision": 1, "recall": 1, "f1": 1, "confusion_matrix": [[0, 0], [0, 1]]}
    assert curves.average_precision(positive[..., 0]) == 1 and curves.calibration(positive)["calibration"] == 1


@over("classes", [3, 7, 11, 120])
def test_top_classes_and_confusion_are_scikit_learns(rig: Any, spec: Any, classes: int) -> None:
    """Some of the model's classes are never a label; figures are those there are enough classes for."""
    rigged = rig(spec(loss="softmax_cross_entropy", classes=classes), rows=200, capacity=256)
    rigged.model.views(rigged.state)["output.weight"][:] = rigged.rng.normal(0, 0.5, (5, classes))
    figures, p, y, w = trained(rigged, 4, classes - 1)
    every, predicted = list(range(classes)), p.argmax(1)
    for most in (5, 10, 100):
        name = f"top_{most}_accuracy"
        assert (name in figures) == (classes > most) == (name in rigged.model.figures)
        if classes > most:
            exact = sk.top_k_accuracy_score(y, p, k=most, sample_weight=w, labels=every)
            assert figures[name] == pytest.approx(exact, rel=1e-9) and 0 < exact < 1
    assert ("confusion_matrix" in figures) == ("macro_f1" in figures) == (classes <= 64)
    assert "confusion_matrix" not in rigged.model.figures
    if classes > 64:
        return
    matrix = figures["confusion_matrix"]
    np.testing.assert_allclose(matrix, sk.confusion_matrix(y, predicted, sample_weight=w, labels=every), rtol=1e-9)
    for name, scored in (("precision", sk.precision_score), ("recall", sk.recall_score), ("f1", sk.f1_score)):
        exact = scored(y, predicted, sample_weight=w, average="macro", zero_division=0)
        assert figures[f"macro_{name}"] == pytest.approx(exact, rel=1e-9)
        exact = scored(y, predicted, sample_weight=w, average=None, labels=every, zero_division=0)
        assert [each[name] for each in by_class(matrix)] == pytest.approx(exact, rel=1e-9)
    assert sum(each["weight"] for each in by_class(matrix)) == pytest.approx(w.sum())
    assert np.trace(matrix) / w.sum() == pytest.approx(figures["accuracy"])


def test_confusion_of_a_window_is_that_of_its_rows(rig: Any, spec: Any) -> None:
    """The difference of two looks, as all that is gathered."""
    rigged = rig(spec(loss="softmax_cross_entropy", classes=6), rows=200, capacity=256)
    plan = rigged.train(1)
    before = {name: block.copy() for name, block in rigged.model.scores(rigged.share).items()}
    rigged.step(plan)
    window = {name: block - before[name] for name, block in rigged.model.scores(rigged.share).items()}
    figures = summary(window)
    assert np.sum(figures["confusion_matrix"]) == pytest.approx(figures["weight"])
    assert np.trace(figures["confusion_matrix"]) == pytest.approx(figures["accuracy"] * figures["weight"])
    assert figures["accuracy"] <= figures["top_5_accuracy"] <= 1


def state(rows: int) -> dict[str, Any]:
    """A regression's scores after so many rows."""
    return {"score.loss": np.array([3.0 * rows, 3.0 * rows, rows, 0.0]), "score.errors": np.full(5, float(rows)),
            "score.rows": np.array([rows]),   # each of weight 3: a window counts rows
            "optimizer.steps": np.array([rows // 8])}


def scores(rows: int) -> dict[str, Any]:
    return {name: block for name, block in state(rows).items() if name.startswith("score.")}


def begun(begin: int, closed: int) -> dict[str, Any]:
    """The blocks of a window that began after so many rows, when so many had closed."""
    blocks = {f"window.{name.removeprefix('score.')}": block for name, block in scores(begin).items()}
    return blocks | {"window.closed": np.array([closed])}


def test_the_first_window_grows_and_each_that_closes_is_reported_over_starts() -> None:
    quality = Quality()
    quality.begin(state(0) | begun(0, 0), {})
    assert quality.look(state(2_000))["window"]["rows"] == 2_000
    assert quality.look(state(6_000))["window"]["rows"] == 6_000
    ends = [scores(10_500), scores(20_500), scores(31_000)]
    full = quality.look(state(32_000), ends)
    assert [each["rows"] for each in full["windows"]] == [10_500, 10_000, 10_500] and full["total"]["rows"] == 32_000
    assert full["window"] == full["windows"][-1] and quality.look(state(33_000)) == {
        **full, "total": quality.look(state(33_000))["total"], "windows": [], "updates": 33_000 // 8}
    again = Quality()
    again.begin(state(33_000) | begun(31_000, 3), full)
    assert again.look(state(40_000))["window"] == full["window"]
    assert again.look(state(42_000), [scores(41_500)])["window"]["rows"] == 10_500


def test_updates_and_the_columns_most_clipped_are_reported() -> None:
    moments = np.zeros((3, len(NAMES)))
    moments[:, NAMES.index("clipped")] = [2, 0, 7]
    quality = Quality(["a", "b", "c"])
    quality.begin(state(0) | begun(0, 0), {})
    seen = quality.look({**state(800), "standardize.numbers": moments})
    assert seen["updates"] == 100 and seen["clipped"] == {"c": 7, "a": 2} and list(seen["clipped"]) == ["c", "a"]


HIDDEN = {"dense": 8, "activation": "relu"}
LATE, DELAY = ("late", "binary_cross_entropy", {"partial": True}), ("delay", "huber", {"weight": 0.3, "partial": True})
# SHA-256 of state, share and predictions after three steps of each loss alone, before there were heads
ALONE = {
    "binary_cross_entropy": "9a0264720e202ba5",
    "focal": "4823cedb70b3d9d3",
    "hinge": "47916bd81fc64344",
    "huber": "eac2363e535f642f",
    "log_cosh": "713fb423a5107a0b",
    "mean_absolute_error": "7a49e271db92b1ab",
    "mean_squared_error": "86fb07d22b4579d8",
    "poisson": "4de795c514bf56e0",
    "quantile": "35ce93dffed2e78f",
    "softmax_cross_entropy": "c88ee2b1693edd06",
}


@over("name", ALONE)
def test_a_model_of_one_loss_has_the_bits_it_had_before_there_were_heads(rig: Any, spec: Any, name: str) -> None:
    digest = hashlib.sha256()
    for example in losses.get(name).EXAMPLES:
        given = {key: value for key, value in example.items() if key != "settings"}
        given |= {"classes": 3} if losses.label_kind(name) == "class" else {}
        shape = {"layers": [HIDDEN], "standardize": True, "categories": 1, "bags": [0, 2], **given}
        rigged = rig(spec(loss=name, settings=example.get("settings"), **shape), rows=300, capacity=320)
        plan = rigged.plan()
        for _ in range(3):
            rigged.step(plan)
            rigged.fill()
        plan.predict(rigged.address)
        model = rigged.model
        end = next(block.offset for block in model.blocks if block.group == "window")   # which came later, behind all
        for part in (rigged.state[:end], rigged.share[: end - model.learned_bytes], plan.output()[:300]):
            digest.update(part.tobytes())
    assert digest.hexdigest()[:16] == ALONE[name]


@over("name", losses.names())
def test_one_head_of_weight_1_whose_label_all_rows_have_learns_as_a_model_of_one_loss(
    rig: Any, spec: Any, name: str
) -> None:
    alone = rig(spec(loss=name, layers=[HIDDEN], categories=1), rows=300, capacity=320)
    headed = rig(spec(heads=[("late", name, {"partial": True})], layers=[HIDDEN], categories=1), rows=300, capacity=320)
    headed.blocks["label:0"][:] = alone.blocks["label"]
    headed.blocks["weight"][:] = alone.blocks["weight"]
    one, other = alone.model.views(alone.state), headed.model.views(headed.state)
    learned = [each for each in one if each.startswith(("dense0", "output", "c0"))]
    renamed = {each: each.replace("output.", "output.late.") for each in learned}
    for each, name in renamed.items():
        other[name][:] = one[each]
    plans = [rigged.plan() for rigged in (alone, headed)]
    for _ in range(3):
        assert alone.step(plans[0]) == headed.step(plans[1])
    assert len(renamed) == 5
    for each, name in renamed.items():
        assert one[each].tobytes() == other[name].tobytes(), each


@over("backend", ["cpu", "reference"])
@over("name", losses.names())
def test_a_head_whose_label_no_row_has_learns_nothing_and_the_others_as_without_it(
    rig: Any, spec: Any, name: str, backend: str
) -> None:
    """A gradient that is not a number would spread through what the heads share."""
    both = rig(spec(heads=[LATE, ("other", name, {"partial": True, "weight": 7.0})], layers=[HIDDEN], standardize=True))
    alone = rig(spec(heads=[LATE], layers=[HIDDEN], standardize=True))
    for rigged in (both, alone):
        for block in ("numbers", "label:0", "weight"):
            rigged.blocks[block][:] = both.blocks[block]
        views = rigged.model.views(rigged.state)
        for each in ("dense0.weight", "dense0.bias", "output.late.weight", "output.late.bias"):
            views[each][:] = both.model.views(both.state)[each]
    missing = -1 if both.blocks["label:1"].dtype == np.int32 else np.nan
    both.blocks["label:1"][:] = missing
    before = {each: view.copy() for each, view in both.model.views(both.state).items()}
    plans = [rigged.plan(backend) for rigged in (both, alone)]
    assert both.step(plans[0]) == alone.step(plans[1]) > 0
    assert plans[0].step.not_finite == 0
    after, as_alone = both.model.views(both.state), alone.model.views(alone.state)
    for each in ("output.other.weight", "output.other.bias"):
        np.testing.assert_array_equal(after[each], before[each])
    for each in ("dense0.weight", "output.late.weight", "output.late.bias"):
        np.testing.assert_array_equal(after[each], as_alone[each])
    figures = summary(both.model.scores(both.share))
    assert (figures["other.rows"], figures["other.weight"]) == (0, 0) and "other.loss" not in figures
    assert figures["late.log_loss"] == summary(alone.model.scores(alone.share))["late.log_loss"]


def test_figures_are_those_of_the_rows_that_have_the_label(rig: Any, spec: Any) -> None:
    rigged = rig(spec(heads=[LATE, DELAY], layers=[HIDDEN]), rows=50)
    plan = rigged.plan()
    plan.predict(rigged.address)
    predicted = plan.output()[:50].astype(np.float64)
    mean = rigged.step(plan)
    figures = summary(rigged.model.scores(rigged.share))
    w = rigged.blocks["weight"][:50, 0].astype(np.float64)
    late, delay = (rigged.blocks[f"label:{at}"][:50, 0].astype(np.float64) for at in range(2))
    for label, head in ((late, "late"), (delay, "delay")):
        there = ~np.isnan(label) & (w > 0)
        assert 0 < figures[f"{head}.rows"] == there.sum() < 49
        assert figures[f"{head}.weight"] == pytest.approx(w[there].sum(), rel=1e-6)
    there = ~np.isnan(late) & (w > 0)
    plain = -np.log(np.where(late > 0, predicted[:, 0], 1 - predicted[:, 0]))[there]
    assert figures["late.log_loss"] == pytest.approx((plain * w[there]).sum() / w[there].sum(), rel=1e-5)
    there = ~np.isnan(delay) & (w > 0)
    errors = (predicted[:, 1] - delay)[there]
    assert figures["delay.rmse"] == pytest.approx(np.sqrt((errors**2 * w[there]).sum() / w[there].sum()), rel=1e-5)
    assert figures["rows"] == 49 and figures["weight"] == pytest.approx(w.sum(), rel=1e-6)
    total = figures["late.log_loss"] * figures["late.weight"] + 0.3 * figures["delay.loss"] * figures["delay.weight"]
    assert figures["loss"] == pytest.approx(total / w.sum(), rel=1e-6)
    assert figures["loss"] == pytest.approx(mean, rel=1e-12)


def test_a_model_names_its_figures_and_the_one_that_training_is_scored_by(spec: Any) -> None:
    known = Model(spec(heads=[LATE, DELAY])).figures
    assert {"loss", "late.log_loss", "late.auc", "delay.rmse", "delay.constant_rmse"} <= set(known)
    assert not {"rows", "weight", "late.rows", "delay.weight"} & set(known)
    assert usual(known) == "loss" and {"loss", "late.auc", "delay.rmse"} <= set(ranked(known))
    assert [is_lower_better(name) for name in ("loss", "late.log_loss", "late.auc")] == [True, True, False]
    assert "loss" not in ranked(Model(spec(loss="huber")).figures)


def test_validation_rows_are_scored_head_by_head(rig: Any, spec: Any) -> None:
    rigged = rig(spec(heads=[DELAY, LATE], layers=[HIDDEN, {"dropout": 0.5}]))
    validation = Evaluator(rigged.model, rigged.layout, rigged.state)
    validation.add(rigged.slot)
    found = summary(validation.scores())
    plain = rig(spec(heads=[DELAY, LATE], layers=[HIDDEN]))
    plain.step(plain.plan())
    for name, value in numbers(summary(plain.model.scores(plain.share))).items():
        assert found[name] == pytest.approx(value, rel=1e-6), name


def test_a_graph_gives_each_head_the_vertex_it_names(rig: Any, spec: Any) -> None:
    graph = [{"name": "a", **HIDDEN, "of": "input"}, {"name": "delay", "dense": 1, "of": "a"},
             {"name": "tower", "dense": 3, "activation": "tanh", "of": "a"},
             {"name": "last", "dense": 2, "of": "a"}]  # fmt: skip
    mode = ("mode", "softmax_cross_entropy", {})
    model = Model(spec(heads=[("late", "binary_cross_entropy", {"of": "tower"}), DELAY, mode], graph=graph))
    shapes = {block.name: block.shape for block in model.blocks if block.group == "parameters"}
    assert shapes["output.late.weight"] == (3, 1) and shapes["output.mode.weight"] == (2, 3)
    assert shapes["delay.weight"] == (8, 1) and "output.delay.weight" not in shapes
    zero = [vertex.name for vertex in model.whole_graph() if vertex.options.get("zero")]
    assert zero == ["delay", "output.late", "output.mode"]   # the model begins as the constant predictions


def test_the_last_vertex_may_be_one_that_a_loss_takes(spec: Any) -> None:
    graph = [{"name": "a", "dense": 5, "of": "input"}, {"name": "delay", "dense": 1, "of": "input"}]
    model = Model(spec(heads=[LATE, DELAY], graph=graph))
    assert {vertex.name: vertex.reads for vertex in model.whole_graph()} == {
        "a": ("input",), "delay": ("input",), "output.late": ("a",),
    }  # fmt: skip


@over("backend", ["cpu", "reference"])
def test_a_head_whose_loss_is_not_finite_is_flagged(rig: Any, spec: Any, backend: str) -> None:
    """In that batch alone."""
    squared = ("delay", "mean_squared_error", {"partial": True})
    rigged = rig(spec(heads=[LATE, squared], optimizer="sgd", layers=[HIDDEN]))
    plan, label = rigged.plan(backend), rigged.blocks["label:1"]
    there = np.flatnonzero(~np.isnan(label[:50, 0]) & (rigged.blocks["weight"][:50, 0] > 0))[0]
    state = rigged.state.copy()
    for cell, flagged in ((30.0, 0), (1e25, 1), (30.0, 0)):   # whose square is infinite, and no gradient is
        rigged.state[:] = state
        label[there] = cell
        rigged.step(plan, learning_rate=0.0)
        assert plan.step.not_finite == flagged, cell


@over("rows", [50, 700])
@over("name", losses.names())
def test_every_loss_scores_as_training_does(rig: Any, spec: Any, name: str, rows: int) -> None:
    rigged = rig(spec(loss=name, layers=[shapes.HIDDEN], **losses.get(name).EXAMPLES[0]), rows=rows, capacity=rows)
    validation = Evaluator(rigged.model, rigged.layout, rigged.state)
    validation.add(rigged.slot)
    found = {key: block.copy() for key, block in validation.scores().items()}
    rigged.step(rigged.plan())
    for key, block in rigged.model.scores(rigged.share).items():
        np.testing.assert_array_equal(found[key], block)
