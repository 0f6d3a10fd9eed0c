"""The phases of a plan: what each does, what it leaves alone, and that a plan has no more than were asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute import backends
from streamtrain.compute.bound import at_address
from streamtrain.compute.builder import PREDICTING
from streamtrain.compute.model import Model
from streamtrain.compute.objective import Objective
from streamtrain.compute.spec import size_bytes
from streamtrain.errors import UserMistake
from tests.compute.shapes import HIDDEN, SHAPES, each_shape

RATE = 0.5
BACKENDS = [name for name in backends.names() if backends.get(name).answers() is None]
CLIPPED = {"categories": 2, "bags": [0], "layers": [HIDDEN], "optimizer": "lamb", "numbers": 5}


def objective_of(rigged: Any, isa: str = "") -> Objective:
    return Objective(rigged.model, rigged.layout, [rigged.slot], rigged.state, isa)


def usable(told: dict[str, Any]) -> bool:
    """What a window's objective takes: see test_objective.py for the others."""
    builder, _ = Model(told).built(1)
    return not builder.draws and not builder.averages


@each_shape
def test_the_gradient_is_what_a_step_follows(rig: Any, spec: Any, shape: dict[str, Any]) -> None:
    """SGD without settings of its own goes by rate x gradient; a table's rows that no row has stay."""
    told = spec(**{**shape, "optimizer": "sgd"})
    if not usable(told):
        return
    for rows in (50, 700):
        one, other = rig(told, rows=rows, capacity=rows), rig(told, rows=rows, capacity=rows)
        objective = objective_of(one)
        before = objective.start()
        value, gradient = objective(before)
        plan = other.plan()
        assert value == pytest.approx(other.step(plan, RATE), rel=1e-12), rows
        after = objective_of(other).start()
        np.testing.assert_allclose(after, before - RATE * gradient, rtol=3e-7, atol=3e-7, err_msg=f"{rows} rows")
        assert abs(gradient).max() > 0, rows


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


def outcome(rigged: Any, backend: str, threads: int, phases: tuple[str, ...]) -> list[bytes]:
    """Of three steps, each of these phases, one after the other; and of a prediction."""
    plan = rigged.plan(backend, phases=(*phases, "predict"), threads=threads)
    rigged.statistics(plan)
    results = []
    for number in (1, 2, 3):
        plan.step.learning_rate, plan.step.number, plan.step.random = 0.01, number, 77 + number
        for phase in phases:
            getattr(plan, phase)(rigged.address)
        step = plan.step
        results.append((step.rows, step.loss_sum, step.weight_sum, step.not_finite))
    plan.predict(rigged.address)
    return [repr(results).encode(), rigged.state.tobytes(), rigged.share.tobytes(), plan.output().tobytes()]


def assert_parts_are_whole(rig: Any, told: dict[str, Any], backend: str, rows: int, threads: int = 1) -> None:
    one, other = (outcome(rig(told, rows=rows, capacity=rows), backend, threads, phases)
                  for phases in (("train",), _native.PLAN_PHASES["train"]))  # fmt: skip
    assert one == other


@each_shape
def test_a_step_is_its_parts_one_after_the_other(rig: Any, spec: Any, shape: dict[str, Any]) -> None:
    assert_parts_are_whole(rig, spec(**shape), "cpu", 700)


@over("backend", [*BACKENDS, "precise"])
@over("limit", ["clip_norm", "clip_group_norm"])
def test_one_that_clips_by_norm_is_too(rig: Any, spec: Any, backend: str, limit: str) -> None:
    told = spec(**CLIPPED)
    told["optimizer"] |= {limit: 0.01, "l2": 0.1}
    for rows, threads in ((50, 1), (700, 1), (700, 3)):
        assert_parts_are_whole(rig, told, backend, rows, threads)


@over("backend", [*BACKENDS, "precise"])
def test_one_whose_values_a_backend_keeps_between_its_parts_is_too(rig: Any, spec: Any, backend: str) -> None:
    layers = [HIDDEN, {"batch_norm": 1e-3}, {"dropout": 0.3}, {"dense": 4, "activation": "gelu"}]
    assert_parts_are_whole(rig, spec(layers=layers, standardize=True, categories=1), backend, 50)


def summed(rigged: Any, phases: tuple[str, ...]) -> dict[str, bytes]:
    """The sums of two gradients over all rows."""
    program = rigged.model.program(rigged.layout, phases)
    memory = [int(part.ctypes.data) for part in (rigged.state, rigged.base, rigged.share)]
    plan = backends.get("cpu").compile(program, (memory[0], memory[1], memory[2]))
    for phase in 2 * phases:
        getattr(plan, phase)(rigged.address)
    sizes = {name: (dtype, shape) for name, (dtype, shape) in rigged.model.built(1)[0].buffers.items()}
    return {
        name: at_address(plan.work_address + offset, size_bytes(*sizes[name])).tobytes()
        for (space, name), offset in program.offsets.items() if space == "work" and name.startswith("gradient.sum")
    }


@over("shape", [shape for shape in SHAPES if "categories" in shape or "bags" in shape][:12])
def test_an_objective_is_its_parts_one_after_the_other(rig: Any, spec: Any, shape: dict[str, Any]) -> None:
    one, other = (summed(rig(spec(**shape), rows=700, capacity=700), phases)
                  for phases in (("objective",), _native.PLAN_PHASES["objective"]))  # fmt: skip
    assert len(one) > 1 and one == other and any(map(any, one.values()))


def test_no_part_has_a_call_of_another(spec: Any) -> None:
    """All parts together have each call of a step, once."""
    builder, _ = Model(spec(**CLIPPED)).built(64)
    for whole, parts in _native.PLAN_PHASES.items():
        calls = [call for part in parts for call in builder.calls_of(part)]
        assert len(calls) == len(set(map(id, calls))) == len(builder.calls_of(whole)), whole
        assert {id(call) for call in calls} == {id(call) for call in builder.calls_of(whole)}


def test_a_plan_has_the_phases_asked_for(rig: Any, spec: Any) -> None:
    rigged = rig(spec(layers=[HIDDEN]))
    plan = rigged.plan(phases=PREDICTING)
    plan.predict(rigged.address)
    for phase in (*(getattr(plan, name) for name in _native.PLAN_PHASES if name != "predict"), plan.enqueue):
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
    assert sizes["evaluate"] < parameters and sizes["objective"] > sizes["train"] + 2 * parameters - 100_000


@over("backend", BACKENDS)
def test_statistics_are_what_a_step_adds_to_the_share(rig: Any, spec: Any, backend: str) -> None:
    told = spec(layers=[HIDDEN], standardize=True, loss="softmax_cross_entropy", classes=3)
    one, other = rig(told), rig(told)
    one.step(one.plan(backend))
    state, plan = other.state.copy(), other.plan(backend, phases=("statistics",))
    plan.statistics(other.address)
    np.testing.assert_array_equal(one.share, other.share)
    assert np.array_equal(state, other.state) and plan.step.weight_sum > 0
