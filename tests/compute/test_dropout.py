"""Dropout: how much is left out, by which numbers, and that a prediction knows nothing of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from looped import over

from streamtrain import _native
from streamtrain.compute.spec import flat

COUNT = 200_000


def left(random: int, stream: int, rate: float, count: int = COUNT) -> Any:
    """Ones after dropout."""
    step = _native.StepBlock()
    step.random = random
    y = np.zeros(count, np.float32)
    _native.call_kernel("dropout", "", [count, 0, step, stream, rate, y, np.ones(count, np.float32)])
    return y


@over("rate", [0.0, 0.1, 0.5, 0.99])
def test_a_share_is_0_and_the_mean_stays(rate: float) -> None:
    y = left(7, 0, rate)
    deviation = np.sqrt(rate * (1 - rate) / COUNT)
    assert abs((y == 0).mean() - rate) <= 5 * deviation
    assert set(y.tolist()) <= {0.0, float(np.float32(1) / (np.float32(1) - np.float32(rate)))}
    for every in (2, 4, 16, 64):   # nothing goes by the place
        for first in range(every):
            assert abs((y[first::every] == 0).mean() - rate) <= 6 * deviation * np.sqrt(every)


def test_numbers_go_by_the_steps_key_and_the_op_alone() -> None:
    first = left(2**63, 1, 0.5)
    assert np.array_equal(first, left(2**63, 1, 0.5)) and np.array_equal(first[:1000], left(2**63, 1, 0.5, 1000))
    for other in (left(2**63 + 1, 1, 0.5), left(2**63, 2, 0.5), left(5, 1, 0.5)):
        assert abs((first == other).mean() - 0.5) < 0.01


def test_what_is_left_out_is_left_out(rig: Any, spec: Any) -> None:
    """Also where it is no number: it is chosen away, not multiplied."""
    step = _native.StepBlock()
    y = np.zeros(1000, np.float32)
    _native.call_kernel("dropout", "", [1000, 0, step, 0, 0.5, y, np.full(1000, np.inf, np.float32)])
    assert set(y.tolist()) == {0.0, np.inf}


def test_each_layer_and_each_step_draws_its_own(rig: Any, spec: Any) -> None:
    one = {"dense": 7, "activation": "tanh"}
    losses = {}
    for layers in ([one, {"dropout": 0.5}, one, {"dropout": 0.5}], [one, {"dropout": 0.5}, one], [one, one]):
        for random in (3, 4):
            rigged = rig(spec(layers=layers))
            plan = rigged.plan()
            plan.step.random = random
            losses[len(layers), random] = rigged.step(plan)
    assert losses.pop((2, 3)) == losses.pop((2, 4))
    assert len(set(losses.values())) == len(losses)
    rigged = rig(spec(layers=[{"dropout": 0.5}, {"dropout": 0.5}]))
    streams = [call.args[3] for call in flat(rigged.model.program(rigged.layout).phases["train"])
               if call.op == "dropout"]  # fmt: skip
    assert streams == [0, 1]   # the inputs learn nothing: no way back


def test_a_prediction_is_that_of_the_network_without_it(rig: Any, spec: Any) -> None:
    one = {"dense": 7, "activation": "tanh"}
    found = []
    for layers in ([one, {"dropout": 0.9}], [one]):
        rigged = rig(spec(layers=layers))
        plan = rigged.plan()
        plan.step.random = 77
        plan.predict(rigged.address)
        found.append(plan.output()[:50].copy())
    assert np.array_equal(*found)
