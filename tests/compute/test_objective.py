"""What a model minimises over a window, against differences and in any cut of the rows; and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain.compute import losses, objective
from streamtrain.compute.minimizers import minimize
from streamtrain.compute.model import aligned
from streamtrain.compute.objective import Objective
from streamtrain.errors import UserMistake

TANH = {"dense": 6, "activation": "tanh"}
ROUGH = ("hinge", "quantile", "mean_absolute_error", "huber")   # bent: differences are wrong at the bend


def with_l2(told: dict[str, Any], **penalties: Any) -> dict[str, Any]:
    return {**told, "optimizer": {"name": "sgd", **penalties}}


def objective_of(rigged: Any) -> Objective:
    return Objective(rigged.model, rigged.layout, [rigged.slot], rigged.state)


def along(function: Objective, x: Any, direction: Any, step: float) -> float:
    """The slope by differences, in five points."""
    near, far = ([function(x + sign * k * step * direction)[0] for sign in (1, -1)] for k in (1, 2))
    return float((8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * step))


@over("name", [name for name in losses.names() if name not in ROUGH])
def test_the_gradient_is_that_of_the_value(rig: Any, spec: Any, name: str) -> None:
    for example in losses.get(name).EXAMPLES:
        told = with_l2(spec(loss=name, layers=[TANH], categories=2, standardize=True, **example), l2=0.1)
        rigged = rig(told, rows=300, capacity=300)
        function, rng = objective_of(rigged), np.random.default_rng(0)
        x = function.start()
        _, gradient = function(x)
        for _ in range(3):
            direction = rng.normal(size=len(x)) * (rng.random(len(x)) < 0.3)
            direction /= np.sqrt((direction**2).sum())
            assert along(function, x, direction, 0.02) == pytest.approx(gradient @ direction, rel=3e-3, abs=3e-3)


def test_rows_cut_otherwise_have_the_same_value_and_gradient(rig: Any, spec: Any) -> None:
    """Each slot by the weights of its rows, which differ."""
    told = with_l2(spec(loss="softmax_cross_entropy", layers=[TANH], categories=2, classes=3), l2=0.2)
    whole = rig(told, rows=500, capacity=500)
    parts = []
    for first, end in ((0, 120), (120, 130), (130, 500)):
        part = rig(told, rows=end - first, capacity=500)
        for name, block in part.blocks.items():
            block[:] = 0
            block[: end - first] = whole.blocks[name][first:end]
        slot = aligned(part.slot.nbytes)
        slot[:] = part.slot
        parts.append(slot)
    state = aligned(whole.state.nbytes)
    state[:] = whole.state
    one, three = objective_of(whole), Objective(whole.model, whole.layout, parts, state)
    x = one.start()
    (value, gradient), (other, its) = one(x), three(x)
    assert value == pytest.approx(other, rel=1e-7)
    np.testing.assert_allclose(its, gradient, atol=1e-6 * abs(gradient).max())
    assert three.batches == 3
    values, slopes = zip(*(three.of_batch(at, x) for at in range(3)), strict=True)
    assert np.mean(values) == pytest.approx(other, rel=1e-12)
    np.testing.assert_allclose(np.mean(slopes, axis=0), its, atol=1e-12)


def test_penalties_are_of_their_groups(rig: Any, spec: Any) -> None:
    """Of weights and embeddings, whole tables; of biases where their group says so."""
    plain = objective_of(rig(spec(layers=[TANH], categories=1)))
    x = plain.start()
    value, gradient = plain(x)
    tables = {"bias": {"l2": 3.0, "l1": 0.5}, "embedding": {"l2": 7.0}}
    with_groups = objective_of(
        rig(with_l2(spec(layers=[TANH], categories=1), l2=2.0, l1=0.25, groups=tables))
    )
    other, its = with_groups(x)
    l2 = np.full(len(x), 2.0)
    dense = 8 * 6
    l2[dense : dense + 6] = l2[dense + 12] = 3.0   # dense0.bias, output.bias
    l2[dense + 13 :] = 7.0
    assert other == pytest.approx(value + float((l2 * x * x).sum()) / 2, rel=1e-12)
    np.testing.assert_allclose(its - gradient, l2 * x, atol=1e-6)
    np.testing.assert_array_equal(with_groups.l1[[0, dense, dense + 13]], [0.25, 0.5, 0.25])


def test_what_has_no_such_function(rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserMistake, match=r"draws random numbers.*got dropout; leave it out, or use l2"):
        objective_of(rig(spec(layers=[TANH, {"dropout": 0.5}])))
    with pytest.raises(UserMistake, match=r"looks at other rows of a batch.*got batch_norm0\.running_mean"):
        objective_of(rig(spec(layers=[TANH, {"batch_norm": 1e-5}])))
    rigged = rig(spec())
    rigged.blocks["weight"][:] = 0
    with pytest.raises(UserMistake, match="expected a weight above 0"):
        objective_of(rigged)
    monkeypatch.setattr(objective, "MOST_PARAMETERS", 5)
    with pytest.raises(UserMistake, match=r"parameters: expected at most 5.*got 6; give the columns fewer buckets"):
        objective_of(rig(spec()))


def test_a_value_that_overflows_is_too_high(rig: Any, spec: Any) -> None:
    """Parameters beyond float32 are no error."""
    function = objective_of(rig(spec(loss="mean_squared_error")))
    start = function.start()
    value, gradient = function(np.full(function.size, 1e300))
    assert not np.isfinite(value) or not np.isfinite(gradient).all()
    assert minimize(function, start, "lbfgs").converged
