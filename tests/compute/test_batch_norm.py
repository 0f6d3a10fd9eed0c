"""Batch norm against PyTorch, over tiles, of rows without weight, of one row, and what it leaves running."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import streamtrain
from streamtrain import _native
from streamtrain.compute.backends.cpu import TILE_ROWS
from streamtrain.compute.model import Model
from tests.e2e.harness import rows

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
SMALL_JOB = {
    "name": "small", "kafka": {"bootstrap.servers": "localhost:9092"},
    "columns": {**{f"x{at}": {"standardize": True} for at in (1, 2, 3, 4)}, "y": {"role": "label"},
                "colour": {"kind": "category", "buckets": 16, "embed": 4}},
    "optimizer": {"name": "adam", "learning_rate": 2e-3},
}
LAYERS = [{"dense": 8}, {"batch_norm": 1e-5, "activation": "tanh"}]


def ours(x: Any, scale: Any, shift: Any, dy: Any, weight: Any, isa: str) -> list[Any]:
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


def theirs(x: Any, scale: Any, shift: Any, dy: Any, dtype: Any) -> list[Any]:
    norm = torch.nn.BatchNorm1d(x.shape[1], dtype=dtype)
    with torch.no_grad():
        norm.weight[:], norm.bias[:] = torch.tensor(scale), torch.tensor(shift)
    given = torch.tensor(x, dtype=dtype, requires_grad=True)
    y = norm(given)
    y.backward(torch.tensor(dy, dtype=dtype))
    found = [y, given.grad, norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_var]
    return [each.detach().numpy() for each in found]


SIZES = [(2, 1, 0), (50, 7, 3), (300, 64, 3), (2000, 130, 100), (3, 999, 3)]   # rows, columns, mean


@pytest.mark.parametrize(("rows", "columns", "level"), SIZES)
def test_no_further_from_float64_than_pytorch(rows: int, columns: int, level: float) -> None:
    """By at most 5 times what its float32 is, with rows of weight 0 between, which count for nothing."""
    rng = np.random.default_rng([rows, columns])
    x, dy = (rng.normal(at, 2, (rows, columns)).astype(np.float32) for at in (level, 0.1))
    scale, shift = rng.normal(1, 0.3, columns).astype(np.float32), rng.normal(size=columns).astype(np.float32)
    exact, narrow = (theirs(x, scale, shift, dy, dtype) for dtype in (torch.float64, torch.float32))
    apart = np.arange(rows) * 3 // 2   # every third row of what we are given is of no weight
    weight = np.zeros(apart[-1] + 2, np.float32)
    wide_x, wide_dy = (np.full((len(weight), columns), bad, np.float32) for bad in (np.inf, np.nan))
    weight[apart], wide_x[apart], wide_dy[apart] = rng.uniform(0.1, 9, rows), x, dy
    bits = set()
    for isa in _native.supported_isas():
        y, dx, *others = ours(wide_x, scale, shift, wide_dy, weight, isa)
        assert not dx[weight == 0].any()
        found = [y[apart], dx[apart], *others]
        bits.add(tuple(each.tobytes() for each in found))
        for mine, its, right in zip(found, narrow, exact, strict=True):
            limit = 5 * abs(its - right).max() + 2e-6 * max(1, abs(right).max())
            assert abs(mine - right).max() <= limit
    assert len(bits) == 1


def test_a_network_learns_as_in_pytorch(rig: Any, spec: Any) -> None:
    """From the same start, ten steps on the same batch, of which one row has no weight; the running statistics too,
    and what they predict."""
    rigged = rig(spec(layers=LAYERS, optimizer="sgd"))
    views, plan = rigged.model.views(rigged.state), rigged.plan()
    nn = torch.nn
    norm = nn.BatchNorm1d(8)
    net = nn.Sequential(nn.Linear(5, 8), norm, nn.Tanh(), nn.Linear(8, 1)).double()
    with torch.no_grad():
        for layer, at in (("dense0", 0), ("output", 3)):
            net[at].weight[:] = torch.tensor(views[f"{layer}.weight"].T)
            net[at].bias[:] = torch.tensor(views[f"{layer}.bias"])
        norm.bias[:] = torch.tensor(views["batch_norm0.shift"])
    batch = {name: torch.tensor(block[: rigged.rows], dtype=torch.float64) for name, block in rigged.blocks.items()}
    counts = batch["weight"][:, 0] > 0
    assert counts.sum() == rigged.rows - 1
    x, y, weight = (block[counts] for block in (batch["numbers"], batch["label"], batch["weight"]))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        loss = (nn.functional.binary_cross_entropy_with_logits(net(x), y, reduction="none") * weight).sum()
        loss = loss / weight.sum()
        assert rigged.step(plan, learning_rate=0.1) == pytest.approx(loss.item(), rel=1e-5)
        loss.backward()
        optimizer.step()
    for ours, its in (("batch_norm0.scale", norm.weight), ("batch_norm0.shift", norm.bias),
                      ("batch_norm0.running_mean", norm.running_mean), ("dense0.weight", net[0].weight.T),
                      ("batch_norm0.running_variance", norm.running_var)):  # fmt: skip
        np.testing.assert_allclose(views[ours], its.detach(), rtol=1e-4, atol=1e-5)
    plan.predict(rigged.address)
    with torch.no_grad():
        told = torch.sigmoid(net.eval()(batch["numbers"])).numpy()
    np.testing.assert_allclose(plan.output()[: rigged.rows], told, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [TILE_ROWS - 1, TILE_ROWS + 1, 3 * TILE_ROWS])
def test_tiles_change_no_bit(rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Two norms one behind the other, each of which waits for all rows, there and back."""
    layers = [{"dense": 70}, {"batch_norm": 1e-5, "activation": "relu"}, {"dense": 9}, {"batch_norm": 1e-3}]
    bits = set()
    for tiles in (True, False):
        monkeypatch.setattr(Model, "tiles", tiles)
        for isa in _native.supported_isas():
            rigged = rig(spec(layers=layers), rows=rows, capacity=3 * TILE_ROWS)
            plan = rigged.plan(isa=isa)
            for _ in range(3):
                rigged.step(plan)
            assert not plan.step.not_finite
            bits.add((rigged.state.tobytes(), rigged.share.tobytes()))
    assert len(bits) == 1


def few_rows(rig: Any, spec: Any, count: int, **settings: Any) -> Any:
    """Rows of weight from the fourth on; the state is that of a lineage under way."""
    rigged = rig(spec(layers=[{"dense": 8}, {**LAYERS[1], **settings}], optimizer="sgd"))
    rigged.blocks["weight"][:] = 0
    rigged.blocks["weight"][3 : 3 + count] = 1
    views = rigged.model.views(rigged.state)
    views["batch_norm0.running_mean"][:], views["batch_norm0.running_variance"][:] = 0.3, 2.0
    return rigged


@pytest.mark.parametrize("count", [1, 2, 9])
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
    """Of one row as `init` writes jobs, then of two, three, …: about as well as without the norm."""
    told = []
    for norms in ((), ({"batch_norm": 1e-5},)):
        layers = [{"dense": 16}, *norms, {"dense": 8, "activation": "tanh"}]
        job = {**SMALL_JOB, "model": {"layers": layers}, "train": {"batch_growth": growth, "round_interval": "off"}}
        metrics = streamtrain.fit(job, list(rows(3000))).manifest.metrics["total"]
        told.append(metrics["log_loss"])
        assert metrics["log_loss"] < 0.75 * metrics["constant_log_loss"], metrics
    assert told[1] < 1.1 * told[0]


def test_a_batch_without_weight_changes_nothing(rig: Any, spec: Any) -> None:
    rigged = few_rows(rig, spec, 0)
    before = rigged.state.copy()
    rigged.step(rigged.plan())
    assert rigged.state.tobytes() == before.tobytes()


@pytest.mark.parametrize("counted", [1, 40])
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


def test_it_starts_as_no_scale_and_belongs_to_the_group_of_norms(rig: Any, spec: Any) -> None:
    told = spec(layers=LAYERS)
    views = (model := Model(told)).views(model.initial_state(3))
    assert views["batch_norm0.scale"].tolist() == views["batch_norm0.running_variance"].tolist() == [1.0] * 8
    assert not views["batch_norm0.shift"].any() and not views["batch_norm0.running_mean"].any()
    told["optimizer"] = {"name": "sgd", "groups": {"norm": {"rate_factor": 0}}}
    rigged = rig(told)
    views, plan = rigged.model.views(rigged.state), rigged.plan()
    before = {each: view.copy() for each, view in views.items()}
    rigged.step(plan)
    held = ("batch_norm0.scale", "batch_norm0.shift")
    assert all(np.array_equal(before[each], views[each]) for each in held)
    assert not np.array_equal(before["batch_norm0.running_mean"], views["batch_norm0.running_mean"])
