"""Layer and RMS norm against PyTorch, alone and in a network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamtrain import _native
from streamtrain.compute.model import Model

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
LAYERS = [("layer_norm", True), ("rms_norm", False)]


def ours(centers: bool, x: Any, scale: Any, shift: Any, dy: Any, isa: str) -> list[Any]:
    """y, dx, dscale and, with a shift, dshift."""
    (rows, columns), given = x.shape, shift if centers else None
    y, dx, dscale, dshift = np.zeros_like(x), np.zeros_like(x), np.zeros_like(scale), np.zeros_like(scale)
    mean, factor = np.zeros(rows, np.float32), np.zeros(rows, np.float32)
    sizes = [rows, columns]
    _native.call_kernel(
        "row_norm_forward", "", [*sizes, int(centers), 1e-5, x, scale, given, y, mean, factor], isa)
    _native.call_kernel("row_norm_gradient", "", [*sizes, int(centers), dy, x, scale, mean, factor, dx], isa)
    _native.call_kernel(
        "row_norm_grad_scale", "", [*sizes, dy, x, mean, factor, dscale, dshift if centers else None], isa)
    return [y, dx, dscale, *([dshift] if centers else [])]


def theirs(centers: bool, x: Any, scale: Any, shift: Any, dy: Any, dtype: Any) -> list[Any]:
    x, scale, shift = (torch.tensor(each, dtype=dtype, requires_grad=True) for each in (x, scale, shift))
    known, shape = torch.nn.functional, x.shape[1:]
    y = known.layer_norm(x, shape, scale, shift, 1e-5) if centers else known.rms_norm(x, shape, scale, 1e-5)
    y.backward(torch.tensor(dy, dtype=dtype))
    return [y.detach().numpy(), *(each.grad.numpy() for each in (x, scale, *([shift] if centers else [])))]


@pytest.mark.parametrize(("name", "centers"), LAYERS)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (50, 7), (300, 64), (2000, 130), (3, 1000)])
def test_no_further_from_float64_than_pytorch(name: str, centers: bool, rows: int, columns: int) -> None:
    """By at most 5 times what its float32 is, sums over many rows too."""
    rng = np.random.default_rng([rows, columns])
    x, dy = (rng.normal(level, 2, (rows, columns)).astype(np.float32) for level in (3, 0.1))
    scale, shift = rng.normal(1, 0.3, columns).astype(np.float32), rng.normal(size=columns).astype(np.float32)
    exact = theirs(centers, x, scale, shift, dy, torch.float64)
    narrow = theirs(centers, x, scale, shift, dy, torch.float32)
    bits = set()
    for isa in _native.supported_isas():
        found = ours(centers, x, scale, shift, dy, isa)
        bits.add(tuple(each.tobytes() for each in found))
        for mine, its, right in zip(found, narrow, exact, strict=True):
            limit = 5 * abs(its - right).max() + 2e-6 * max(1, abs(right).max())
            assert abs(mine - right).max() <= limit
    assert len(bits) == 1


@pytest.mark.parametrize(("name", "centers"), LAYERS)
def test_of_rows_of_one_value_and_of_far_numbers(name: str, centers: bool) -> None:
    rows = np.array([[0, 0, 0], [5, 5, 5], [1e-30, 0, 0], [1e30, -1e30, 1], [np.nan, 1, 2]], np.float32)
    ones = np.ones(3, np.float32)
    y, dx, *_ = ours(centers, rows, ones, np.zeros(3, np.float32), np.ones_like(rows), "")
    assert np.isfinite(y[:4]).all() and np.isfinite(dx[:4]).all() and np.isnan(y[4]).all()
    assert not y[0].any() and (not y[1].any() if centers else np.allclose(y[1], 1))


@pytest.mark.parametrize(("name", "centers"), LAYERS)
def test_a_network_learns_as_in_pytorch(rig: Any, spec: Any, name: str, centers: bool) -> None:
    """From the same start, by gradient descent on the same batch."""
    rigged = rig(spec(layers=[{"dense": 8}, {name: 1e-5, "activation": "tanh"}], optimizer="sgd"))
    views, plan = rigged.model.views(rigged.state), rigged.plan()
    nn = torch.nn
    norm = nn.LayerNorm(8) if centers else nn.RMSNorm(8, eps=1e-5)
    net = nn.Sequential(nn.Linear(5, 8), norm, nn.Tanh(), nn.Linear(8, 1)).double()
    with torch.no_grad():
        for layer, at in (("dense0", 0), ("output", 3)):
            net[at].weight[:] = torch.tensor(views[f"{layer}.weight"].T)
            net[at].bias[:] = torch.tensor(views[f"{layer}.bias"])
        norm.weight[:] = torch.tensor(views[f"{name}0.scale"])
        if centers:
            norm.bias[:] = torch.tensor(views[f"{name}0.shift"])
    batch = {name: torch.tensor(block[: rigged.rows], dtype=torch.float64) for name, block in rigged.blocks.items()}
    x, y, weight = batch["numbers"], batch["label"], batch["weight"]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        loss = (nn.functional.binary_cross_entropy_with_logits(net(x), y, reduction="none") * weight).sum()
        loss = loss / weight.sum()
        assert rigged.step(plan, learning_rate=0.1) == pytest.approx(loss.item(), rel=1e-5)
        loss.backward()
        optimizer.step()
    np.testing.assert_allclose(views[f"{name}0.scale"], norm.weight.detach(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(views["dense0.weight"], net[0].weight.detach().T, rtol=1e-4, atol=1e-5)
    if centers:
        np.testing.assert_allclose(views[f"{name}0.shift"], norm.bias.detach(), rtol=1e-4, atol=1e-5)


def test_it_starts_as_no_scale_and_belongs_to_the_group_of_norms(rig: Any, spec: Any) -> None:
    told = spec(layers=[{"dense": 4}, {"layer_norm": 1e-5}])
    views = (model := Model(told)).views(model.initial_state(3))
    assert views["layer_norm0.scale"].tolist() == [1.0] * 4 and not views["layer_norm0.shift"].any()
    told["optimizer"] = {"name": "sgd", "groups": {"norm": {"rate_factor": 0}}}
    rigged = rig(told)
    views, plan = rigged.model.views(rigged.state), rigged.plan()
    before = {each: view.copy() for each, view in views.items()}
    rigged.step(plan)
    held = [each for each in views if each.startswith("layer_norm0.")]
    assert len(held) == 2 and all(np.array_equal(before[each], views[each]) for each in held)
    assert not np.array_equal(before["dense0.weight"], views["dense0.weight"])
