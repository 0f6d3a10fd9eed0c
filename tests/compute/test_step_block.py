"""What a step leaves in its block beside loss and weight: how many rows counted, and the norm of its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain.compute import backends, losses
from streamtrain.compute.metrics import summary
from tests.compute.shapes import HIDDEN

BACKENDS = [name for name in backends.names() if backends.get(name).answers() is None]
NORM = ("gradient_squares", "gradient_squares_rows", "clip_norm", "score_gradient")


@over("loss", losses.names())
@over("backend", BACKENDS)
def test_active_rows_are_those_of_a_weight_above_0(rig: Any, spec: Any, loss: str, backend: str) -> None:
    rigged = rig(spec(loss, layers=[HIDDEN]))
    plan = rigged.plan(backend, phases=("train", "evaluate"))
    for weights in (rigged.blocks["weight"][:50, 0].copy(), np.zeros(50), np.full(50, -1.0)):
        rigged.blocks["weight"][:50, 0] = weights
        for phase in (plan.train, plan.evaluate):
            phase(rigged.address)
            assert plan.step.active_rows == int((weights > 0).sum())
    assert summary(rigged.model.scores(rigged.share))["rows"] == 2 * 49


@over("backend", BACKENDS)
@over("limit", ["clip_norm", "clip_group_norm"])
def test_the_norm_is_that_of_the_gradient_before_it_is_clipped(rig: Any, spec: Any, backend: str, limit: str) -> None:
    """Of SGD of rate 1 the gradient is what a step takes off."""
    told = spec(layers=[HIDDEN], categories=2, bags=[0])
    found = []
    for bound in (1e9, 1e-3):
        told["optimizer"] = {"name": "sgd", limit: bound}
        rigged = rig(told)
        plan, before = rigged.plan(backend), rigged.state[: rigged.model.learned_bytes].view(np.float32).copy()
        rigged.step(plan, 1.0)
        found.append(plan.step.gradient_norm)
        taken = before - rigged.state[: rigged.model.learned_bytes].view(np.float32)
        if bound > 1:
            assert found[0] == pytest.approx(np.linalg.norm(taken.astype(np.float64)), rel=1e-5)
    assert found[0] == found[1] > 0.1
    rigged.step(plan, 1.0)
    assert summary(rigged.model.scores(rigged.share))["gradient_norm"] == (found[1] + plan.step.gradient_norm) / 2
    assert "gradient_norm" not in rigged.model.figures


@over("backend", BACKENDS)
def test_it_is_0_where_nothing_is_clipped_by_norm_and_costs_nothing(rig: Any, spec: Any, backend: str) -> None:
    rigged = rig(spec(layers=[HIDDEN], categories=2))
    plan = rigged.plan(backend)
    rigged.step(plan)
    assert plan.step.gradient_norm == 0 and "gradient_norm" not in summary(rigged.model.scores(rigged.share))
    assert not {call.op for call in rigged.model.built(64)[0].calls_of("train")}.intersection(NORM)


@over("backend", BACKENDS)
def test_it_is_not_finite_where_the_gradient_is_not(rig: Any, spec: Any, backend: str) -> None:
    rigged = rig({**spec(numbers=1), "optimizer": {"name": "sgd", "clip_norm": 1.0}})
    plan = rigged.plan(backend)
    rigged.blocks["weight"][3], rigged.blocks["numbers"][3] = 1, np.nan
    rigged.step(plan)
    assert np.isnan(plan.step.gradient_norm) and plan.step.not_finite == 1
    rigged.blocks["weight"][:] = rigged.blocks["numbers"][:] = 0
    rigged.step(plan)
    assert plan.step.gradient_norm == 0 and plan.step.active_rows == 0
