"""Several heads over one network: against PyTorch, rows without one's label, and a head alone, which is as ever."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain.compute import losses
from streamtrain.compute.judged import Judged
from streamtrain.compute.metrics import is_lower_better, numbers, ranked, summary, usual
from streamtrain.compute.model import Model
from tests.compute import shapes

HIDDEN = {"dense": 8, "activation": "relu"}
LATE, DELAY = ("late", "binary_cross_entropy", {"partial": True}), ("delay", "huber", {"weight": 0.3, "partial": True})
# SHA-256 of state, share and predictions after three steps of each loss alone, before there were heads
ALONE = {
    "binary_cross_entropy": "6ba1ec5b23d9606f",
    "focal": "fbbfc0190da90bec",
    "hinge": "0cec309f9cb1f14b",
    "huber": "d8fabecc57cdec6b",
    "log_cosh": "9a5a089e8dc03372",
    "mean_absolute_error": "6d86bb6c83a75516",
    "mean_squared_error": "41fbfb0115aeef92",
    "poisson": "4c2cae4eb0c46713",
    "quantile": "2ebbb88d9a26ba41",
    "softmax_cross_entropy": "25c98df3e3bf2231",
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
        for part in (rigged.state, rigged.share, plan.output()[:300]):
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


def test_a_model_names_its_figures_and_the_one_that_training_is_judged_by(spec: Any) -> None:
    known = Model(spec(heads=[LATE, DELAY])).figures
    assert {"loss", "late.log_loss", "late.auc", "delay.rmse", "delay.constant_rmse"} <= set(known)
    assert not {"rows", "weight", "late.rows", "delay.weight"} & set(known)
    assert usual(known) == "loss" and {"loss", "late.auc", "delay.rmse"} <= set(ranked(known))
    assert [is_lower_better(name) for name in ("loss", "late.log_loss", "late.auc")] == [True, True, False]
    assert "loss" not in ranked(Model(spec(loss="huber")).figures)


def test_held_out_rows_are_judged_head_by_head(rig: Any, spec: Any) -> None:
    rigged = rig(spec(heads=[DELAY, LATE], layers=[HIDDEN, {"dropout": 0.5}]))
    judged = Judged(rigged.model, rigged.layout, rigged.state)
    judged.add(rigged.slot)
    found = summary(judged.scores())
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
    judged = Judged(rigged.model, rigged.layout, rigged.state)
    judged.add(rigged.slot)
    found = {key: block.copy() for key, block in judged.scores().items()}
    rigged.step(rigged.plan())
    for key, block in rigged.model.scores(rigged.share).items():
        np.testing.assert_array_equal(found[key], block)
