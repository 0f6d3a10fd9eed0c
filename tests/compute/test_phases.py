"""The phases of a plan: what each does, what it leaves alone, and that a plan has no more than were asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamtrain import _native
from streamtrain.compute import backends
from streamtrain.compute.builder import PREDICTING
from streamtrain.compute.model import Model
from streamtrain.compute.objective import Objective
from streamtrain.errors import UserMistake
from tests.compute.test_model import HIDDEN, IDS, SHAPES

RATE = 0.5


def objective_of(rigged: Any, isa: str = "") -> Objective:
    return Objective(rigged.model, rigged.layout, [rigged.slot], rigged.state, isa)


def usable(told: dict[str, Any]) -> bool:
    """What a window's objective takes: see test_objective.py for the others."""
    builder, _ = Model(told).built(1)
    return not builder.draws and not builder.averages


@pytest.mark.parametrize("shape", SHAPES, ids=IDS)
@pytest.mark.parametrize("rows", [50, 700])
def test_the_gradient_is_what_a_step_follows(rig: Any, spec: Any, shape: dict[str, Any], rows: int) -> None:
    """SGD without settings of its own goes by rate x gradient; a table's rows that no row has stay."""
    told = spec(**{**shape, "optimizer": "sgd"})
    if not usable(told):
        return
    one, other = rig(told, rows=rows, capacity=rows), rig(told, rows=rows, capacity=rows)
    objective = objective_of(one)
    before = objective.start()
    value, gradient = objective(before)
    plan = other.plan()
    assert value == pytest.approx(other.step(plan, RATE), rel=1e-12)
    after = objective_of(other).start()
    np.testing.assert_allclose(after, before - RATE * gradient, rtol=3e-7, atol=3e-7)
    assert abs(gradient).max() > 0


def test_it_changes_nothing_but_the_parameters_and_has_equal_bits(rig: Any, spec: Any) -> None:
    found = set()
    for isa in _native.supported_isas():
        rigged = rig(spec(layers=[HIDDEN], categories=2, standardize=True), rows=700, capacity=700)
        state = rigged.state.copy()
        objective = objective_of(rigged, isa)
        value, gradient = objective(objective.start())
        assert np.array_equal(state, rigged.state)
        found.add((value, gradient.tobytes()))
    assert len(found) == 1


def test_a_plan_has_the_phases_asked_for(rig: Any, spec: Any) -> None:
    rigged = rig(spec(layers=[HIDDEN]))
    plan = rigged.plan(phases=PREDICTING)
    plan.predict(rigged.address)
    for phase in (plan.train, plan.gradient, plan.evaluate, plan.statistics, plan.enqueue):
        with pytest.raises(UserMistake, match="plan: expected a phase that it was compiled for, got"):
            phase(rigged.address)
    other = rigged.plan("reference", phases=PREDICTING)
    with pytest.raises(UserMistake, match="plan: expected a phase that it was compiled for, got train"):
        other.train(rigged.address)


def test_what_is_not_asked_for_takes_no_memory(rig: Any, spec: Any) -> None:
    rigged = rig(spec(layers=[{"dense": 512, "activation": "tanh"}] * 2), rows=10, capacity=10)
    sizes = {phase: rigged.model.program(rigged.layout, (phase,)).workspace_bytes for phase in _native.PLAN_PHASES}
    parameters = 4 * 512 * 512
    assert sizes["predict"] < parameters < sizes["train"] < 2 * parameters
    assert sizes["evaluate"] < parameters and sizes["gradient"] > sizes["train"] + 2 * parameters - 100_000


@pytest.mark.parametrize("backend", [name for name in backends.names() if backends.get(name).answers() is None])
def test_statistics_are_what_a_step_adds_to_the_share(rig: Any, spec: Any, backend: str) -> None:
    told = spec(layers=[HIDDEN], standardize=True, loss="softmax_cross_entropy", classes=3)
    one, other = rig(told), rig(told)
    one.step(one.plan(backend))
    state, plan = other.state.copy(), other.plan(backend, phases=("statistics",))
    plan.statistics(other.address)
    np.testing.assert_array_equal(one.share, other.share)
    assert np.array_equal(state, other.state) and plan.step.weight_sum > 0
