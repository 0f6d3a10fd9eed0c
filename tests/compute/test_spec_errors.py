"""A model spec that does not fit is refused with the place, what was expected and what was found."""

from __future__ import annotations

from typing import Any

import pytest
from looped import over

from streamtrain.compute.model import Model
from streamtrain.errors import UserMistake

CASES: list[tuple[dict[str, Any], str]] = [
    ({"loss": "log"}, "loss: expected one of .*binary_cross_entropy.*, got 'log'"),
    ({"loss": "mean_square_error"}, "did you mean 'mean_squared_error'"),
    ({"optimizer": {"name": "adom"}}, "optimizer: expected one of adadelta.*did you mean 'adam'"),
    ({"optimizer": {"name": "adam", "beta3": 1}},
     r"model.optimizer.beta3: unknown setting of adam; allowed: beta1, beta2, epsilon"),
    ({"optimizer": {"name": "adam", "beta1": 1}}, r"model.optimizer.beta1: expected a number from 0 below 1, got 1"),
    ({"optimizer": {"name": "adam", "epsilon": float("nan")}},
     "model.optimizer.epsilon: expected a number from 0, got nan"),
    ({"layers": [{"dens": 3}]}, r"model.layers\[0\]: expected a layer, one of .*dense.*, got"),
    ({"layers": [{"dense": 0}]}, r"model.layers\[0\].dense: expected a whole number from 1"),
    ({"layers": [{"dense": 3, "activation": "sel"}]}, r"layers\[0\].activation: expected one of none, .*relu.*'sel'"),
    ({"layers": [{"dense": 3, "drop": 0.5}]},
     r"layers\[0\].drop: unknown option of dense; allowed: dense, activation"),
    ({"layers": [{"activation": "relu"}]}, r"model.layers\[0\]: expected a layer, one of .*dense.*, got"),
    ({"layers": "dense"}, "model.layers: expected a list"),
    ({"input": {"numbers": 0}}, "model.input: expected 1 to"),
    ({"input": {"numbers": 2, "standardize": [True]}}, "input.standardize: expected 2 flags"),
    ({"input": {"numbers": 1 << 40}}, "input.numbers: expected a whole number"),
    ({"input": {"categories": [{"name": "a", "buckets": 0}]}}, r"categories\[0\].buckets"),
    ({"input": {"categories": [{"name": "a", "buckets": 2}] * 2}}, "names that differ"),
    ({"loss": "softmax_cross_entropy"}, "input.classes: expected 2 or more"),
]


@over(("change", "text"), CASES, ids=[text for _, text in CASES])
def test_refused(spec: Any, change: dict[str, Any], text: str) -> None:
    with pytest.raises(UserMistake, match=text):
        given = spec() | change
        given["input"] = {**given["input"], "classes": 0} if "input" not in change else change["input"]
        Model(given)
