"""Batch, layer and RMS norm against PyTorch, over tiles, of odd rows, and what batch norm leaves running."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from looped import over

import streamtrain
from streamtrain import _native
from streamtrain.compute.model import Model
from tests.e2e.harness import rows

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
SMALL_JOB = {
    "name": "small", "kafka": {"bootstrap.servers": "localhost:9092"},
    "columns": {**{f"x{at}": {"standardize": True} for at in (1, 2, 3, 4)}, "y": {"role": "label"},
                "colour": {"kind": "category", "buckets": 16, "embed": 4}},
    "optimizer": {"name": "adam", "learning_rate": 2e-3},
}
BATCH_NORM = {"batch_norm": 1e-5, "activation": "tanh"}


def by_batch(x: Any, scale: Any, shift: Any, dy: Any, weight: Any, isa: str) -> list[Any]:
    """y, dx, dscale, dshift and the running mean and variance."""
    (rows, columns), step = x.shape, _native.StepBlock()
    total, squares, mean, factor, dscale, dshift, running_mean = (np.zeros_like(scale) for _ in range(7))
    y, dx, count, running_variance = np.zeros_like(x), np.zeros_like(x), np.zeros(1, np.float32), np.ones_like(scale)
    sizes, saved = [rows, columns], [mean, factor]

    def call(op: str, *arguments: Any) -> None:
        _native.call_kernel(f"batch_norm_{op}", "", list(arguments), isa)

    call("sum", *sizes, x, weight, total, count)
    call("squares", *sizes, x, weight, total, count, squares)
    call("settle", columns, 2, 0.1, 1e-5, count, total, squares, step, running_mean, running_variance, *saved)
    call("forward", *sizes, x, *saved, scale, shift, y)
    call("grad_scale", *sizes, dy, x, weight, *saved, dscale, dshift)
    call("gradient", *sizes, 2, dy, x, weight, count, scale, *saved, dscale, dshift, dx)
    assert not step.not_finite
    return [y, dx, dscale, dshift, running_mean, running_variance]


def by_row(centers: bool, x: Any, scale: Any, shift: Any, dy: Any, isa: str = "") -> list[Any]:
    """y, dx, dscale and, with a shift, dshift."""
    (rows, columns), shift = x.shape, shift if centers else None
    y, dx, dscale, dshift = np.zeros_like(x), np.zeros_like(x), np.zeros_like(scale), np.zeros_like(scale)
    sizes, saved = [rows, columns], [np.zeros(rows, np.float32), np.zeros(rows, np.float32)]

    def call(op: str, *arguments: Any) -> None:
        _native.call_kernel(f"row_norm_{op}", "", [*sizes, *arguments], isa)

    call("forward", int(centers), 1e-5, x, scale, shift, y, *saved)
    call("gradient", int(centers), dy, x, scale, *saved, dx)
    call("grad_scale", dy, x, *saved, dscale, dshift if centers else None)
    return [y, dx, dscale, *([dshift] if centers else [])]


def theirs(name: str, x: Any, scale: Any, shift: Any, dy: Any, dtype: Any) -> list[Any]:
    x, scale, shift = (torch.tensor(each, dtype=dtype, requires_grad=True) for each in (x, scale, shift))
    known, columns = torch.nn.functional, x.shape[1]
    running = torch.zeros(columns, dtype=dtype), torch.ones(columns, dtype=dtype)
    y = {
        "batch_norm": lambda: known.batch_norm(x, *running, scale, shift, training=True),
        "layer_norm": lambda: known.layer_norm(x, (columns,), scale, shift, 1e-5),
        "rms_norm": lambda: known.rms_norm(x, (columns,), scale, 1e-5),
    }[name]()
    y.backward(torch.tensor(dy, dtype=dtype))
    found = [y.detach(), *(each.grad for each in (x, scale, shift) if each.grad is not None)]
    return [each.numpy() for each in (*found, *(running if name == "batch_norm" else ()))]


SIZES = [(2, 1, 0), (50, 7, 3), (300, 64, 3), (2000, 130, 100), (3, 999, 3)]   # rows, columns, mean


@over("name", ["batch_norm", "layer_norm", "rms_norm"])
@over(("rows", "columns", "level"), [*SIZES, (1, 1, 3)])
def test_no_further_from_float64_than_pytorch(name: str, rows: int, columns: int, level: float) -> None:
    """By at most 5 times what its float32 is; batch norm with rows of weight 0 between, which count for nothing."""
    if name == "batch_norm" and rows == 1:
        return   # PyTorch refuses it
    rng = np.random.default_rng([rows, columns])
    x, dy = (rng.normal(at, 2, (rows, columns)).astype(np.float32) for at in (level, 0.1))
    scale, shift = rng.normal(1, 0.3, columns).astype(np.float32), rng.normal(size=columns).astype(np.float32)
    exact, narrow = (theirs(name, x, scale, shift, dy, dtype) for dtype in (torch.float64, torch.float32))
    apart = np.arange(rows) * 3 // 2   # every third row of what we are given is of no weight
    weight = np.zeros(apart[-1] + 2, np.float32)
    wide_x, wide_dy = (np.full((len(weight), columns), bad, np.float32) for bad in (np.inf, np.nan))
    weight[apart], wide_x[apart], wide_dy[apart] = rng.uniform(0.1, 9, rows), x, dy
    bits = set()
    for isa in _native.supported_isas():
        if name == "batch_norm":
            y, dx, *others = by_batch(wide_x, scale, shift, wide_dy, weight, isa)
            assert not dx[weight == 0].any()
            found = [y[apart], dx[apart], *others]
        else:
            found = by_row(name == "layer_norm", x, scale, shift, dy, isa)
        bits.add(tuple(each.tobytes() for each in found))
        for mine, its, right in zip(found, narrow, exact, strict=True):
            limit = 5 * abs(its - right).max() + 2e-6 * max(1, abs(right).max())
            assert abs(mine - right).max() <= limit
    assert len(bits) == 1


@over("centers", [True, False])
def test_of_rows_of_one_value_and_of_far_numbers(centers: bool) -> None:
    rows = np.array([[0, 0, 0], [5, 5, 5], [1e-30, 0, 0], [1e30, -1e30, 1], [np.nan, 1, 2]], np.float32)
    y, dx, *_ = by_row(centers, rows, np.ones(3, np.float32), np.zeros(3, np.float32), np.ones_like(rows))
    assert np.isfinite(y[:4]).all() and np.isfinite(dx[:4]).all() and np.isnan(y[4]).all()
    assert not y[0].any() and (not y[1].any() if centers else np.allclose(y[1], 1))


def few_rows(rig: Any, spec: Any, count: int, **settings: Any) -> Any:
    """Rows of weight from the fourth on; the state is that of a lineage under way."""
    rigged = rig(spec(layers=[{"dense": 8}, {**BATCH_NORM, **settings}], optimizer="sgd"))
    rigged.blocks["weight"][:] = 0
    rigged.blocks["weight"][3 : 3 + count] = 1
    views = rigged.model.views(rigged.state)
    views["batch_norm0.running_mean"][:], views["batch_norm0.running_variance"][:] = 0.3, 2.0
    return rigged


@over("count", [1, 2, 9])
def test_a_batch_of_few_rows_is_normalised_by_the_running_statistics(rig: Any, spec: Any, count: int) -> None:
    """As a prediction is, and then joins them, by as much as it has rows; what lies below it learns."""
    rigged, rows = few_rows(rig, spec, count, least_rows=10, momentum=0.2), slice(3, 3 + count)
    views, plan = rigged.model.views(rigged.state), rigged.plan()
    before = {name: view.copy() for name, view in views.items()}
    plan.predict(rigged.address)
    told, label = plan.output()[rows].astype(np.float64), rigged.blocks["label"][rows]
    assert rigged.step(plan) == pytest.approx(-np.log(np.where(label, told, 1 - told)).mean(), rel=1e-5)
    linear = rigged.blocks["numbers"][rows].astype(np.float64) @ before["dense0.weight"] + before["dense0.bias"]
    part, apart = 0.2 * count / 10, linear.mean(0) - 0.3
    np.testing.assert_allclose(views["batch_norm0.running_mean"], 0.3 + part * apart, rtol=1e-5)
    spread = linear.var(0) + (1 - part) * apart**2 - 2   # of the rows about the new mean
    np.testing.assert_allclose(views["batch_norm0.running_variance"], 2 + part * spread, rtol=1e-5)
    assert (views["dense0.weight"] != before["dense0.weight"]).any()


def test_from_least_rows_on_a_batch_is_normalised_by_its_own(rig: Any, spec: Any) -> None:
    found = {}
    for count in (19, 20):
        rigged = few_rows(rig, spec, count, least_rows=20)
        plan = rigged.plan()
        plan.predict(rigged.address)
        told, label = plan.output()[3 : 3 + count].astype(np.float64), rigged.blocks["label"][3 : 3 + count]
        found[count] = rigged.step(plan) + np.log(np.where(label, told, 1 - told)).mean()
    assert abs(found[19]) < 1e-6 < 1e-3 < abs(found[20])


@pytest.mark.parametrize("growth", [4000, 300])
def test_a_stream_is_learned_from_its_first_batches_on(growth: int) -> None:
    """Batches have one row as `init` writes jobs, then two, three, …: about as well as without the norm."""
    told = []
    for norms in ((), ({"batch_norm": 1e-5},)):
        layers = [{"dense": 16}, *norms, {"dense": 8, "activation": "tanh"}]
        job = {**SMALL_JOB, "model": {"layers": layers}, "train": {"batch_growth": growth, "round_interval": "off"}}
        metrics = streamtrain.fit(job, list(rows(3000))).manifest.metrics["total"]
        told.append(metrics["log_loss"])
        assert metrics["log_loss"] < 0.75 * metrics["constant_log_loss"], metrics
    assert told[1] < 1.1 * told[0]


@over("counted", [1, 40])
def test_running_statistics_that_are_not_finite_are_told(rig: Any, spec: Any, counted: int) -> None:
    """Their square is past float32, the loss is not."""
    rigged = few_rows(rig, spec, counted)
    rigged.blocks["numbers"][3] = 1e25
    plan = rigged.plan()
    assert np.isfinite(rigged.step(plan, learning_rate=0.0)) and plan.step.not_finite == 1


def test_layers_of_one_name_share_what_runs(rig: Any, spec: Any) -> None:
    """Each takes its step on it, in their order, as a module that PyTorch calls twice."""
    graph = [
        {"name": "a", "dense": 4, "of": "input"}, {"name": "b", "batch_norm": 1e-5, "momentum": 0.25, "of": "a"},
        {"name": "c", "dense": 4, "activation": "tanh", "of": "b"}, {"name": "d", "like": "b", "of": "c"},
    ]  # fmt: skip
    rigged = rig(spec(graph=graph))
    views, norm = rigged.model.views(rigged.state), torch.nn.BatchNorm1d(4, momentum=0.25).double()
    assert [name for name in views if "running" in name] == ["b.running_mean", "b.running_variance"]
    with torch.no_grad():
        norm.bias[:] = torch.tensor(views["b.shift"])
        wa, ba, wc, bc = (torch.tensor(views[name], dtype=torch.float64)
                          for name in ("a.weight", "a.bias", "c.weight", "c.bias"))  # fmt: skip
        counts = rigged.blocks["weight"][: rigged.rows, 0] > 0
        x = torch.tensor(rigged.blocks["numbers"][: rigged.rows][counts], dtype=torch.float64)
        norm(torch.tanh(norm(x @ wa + ba) @ wc + bc))
    rigged.step(rigged.plan())
    np.testing.assert_allclose(views["b.running_mean"], norm.running_mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(views["b.running_variance"], norm.running_var, rtol=1e-4)


@over("name", ["batch_norm", "layer_norm"])
def test_it_starts_as_no_scale_and_belongs_to_the_group_of_norms(rig: Any, spec: Any, name: str) -> None:
    given = spec(layers=[{"dense": 4}, {name: 1e-5}])
    given["optimizer"] = {"name": "sgd", "groups": {"norm": {"rate_factor": 0}}}
    views = (model := Model(given)).views(model.initial_state(3))
    starts = {"scale": 1.0, "shift": 0.0, "running_mean": 0.0, "running_variance": 1.0}
    its = {part: views[f"{name}0.{part}"].tolist() for part in starts if f"{name}0.{part}" in views}
    assert its == {part: [starts[part]] * 4 for part in [*starts][: 4 if name == "batch_norm" else 2]}
    rigged = rig(given)
    views, plan = rigged.model.views(rigged.state), rigged.plan()
    before = {each: view.copy() for each, view in views.items()}
    rigged.step(plan)
    changed = {each for each in before if not np.array_equal(before[each], views[each])}
    assert "dense0.weight" in changed and not changed & {f"{name}0.scale", f"{name}0.shift"}
    assert (f"{name}0.running_mean" in changed) == (name == "batch_norm")
