"""The gradient of the input matrix is made of the columns of tables alone where all that read it can do so."""

from __future__ import annotations

from typing import Any

import pytest
from looped import over

from streamtrain.compute import input as inputs
from streamtrain.compute.builder import Value

RELU = {"dense": 6, "activation": "relu"}
TWO = [
    {"name": "a", **RELU, "of": "input"}, {"name": "b", "dense": 4, "of": "input"}, {"name": "c", "concat": ["a", "b"]},
]  # fmt: skip
MIXED = [
    {"name": "a", "dense": 12, "of": "input"}, {"name": "b", "multiply": ["a", "input"]},
    {"name": "c", "add": ["b", "input"]},
]  # fmt: skip
LAST = [
    {"name": "a", "scale": ["input"], "by": 0.5}, {"name": "b", "dense": 4, "of": "input"},
    {"name": "c", "concat": ["a", "b"]},
]  # fmt: skip
NETWORKS: dict[str, dict[str, Any]] = {
    "a list": {"layers": [RELU, {"dense": 4}], "categories": 2, "standardize": True},
    "a linear one": {"categories": 2},
    "two readers": {"graph": TWO, "categories": 2},
    "a reader of all": {"graph": MIXED, "categories": 2},
    "one before it": {"graph": LAST, "categories": 2},
    "numbers behind": {"layers": [RELU], "categories": 1, "vectors": [3], "bags": [0, 2]},
    "bags": {"layers": [RELU], "bags": [0, 1, 4], "pixels": [4]},
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_bits_are_those_of_all_columns(rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    states = []
    for whole in (False, True):
        if whole:
            monkeypatch.setattr(inputs, "Value", lambda *given, **named: Value(*given, **named | {"learned": None}))
        made = rig(spec(**NETWORKS[name]))
        plan = made.plan()
        for _ in range(3):
            made.step(plan)
        states.append((made.state.tobytes(), made.share.tobytes()))
    assert states[0] == states[1]


@over(
    ("name", "expected"),
    [
        ("a list", {(7, 6), (6, 4), (4, 1)}),  # tables of 3 and 4 beside 5 numbers
        ("a linear one", {(7, 1)}),
        ("two readers", {(7, 6), (7, 4), (10, 1)}),
        ("numbers behind", {(9, 6), (6, 1)}),  # 3 of the category, 3 of the vector between them, 3 of tags
    ],
)
def test_no_other_column_is_computed(rig: Any, spec: Any, name: str, expected: set[tuple[int, int]]) -> None:
    made = rig(spec(**NETWORKS[name]))
    calls = made.model.built(64)[0].calls_of("train")
    assert {call.args[1:3] for call in calls if call.op == "dense_grad_input"} == expected
