"""Shapes are inferred before anything is built: what does not fit is told by its place, what fits has equal bits."""

from __future__ import annotations

from typing import Any

import pytest
from looped import over

from streamtrain.compute import layers, vertices
from streamtrain.compute.builder import TRAINING
from streamtrain.compute.model import Model
from tests.compute.shapes import HIDDEN, each_shape


@each_shape
def test_without_the_pass_a_model_is_the_same(
    spec: Any, monkeypatch: pytest.MonkeyPatch, shape: dict[str, Any]
) -> None:
    """Blocks, calls and start; what each vertex makes has the shape that its rule gives, as building asserts."""
    one = Model(spec(**shape))
    with monkeypatch.context() as patch:
        patch.setattr(Model, "infers", False)
        other = Model(spec(**shape))
    for part in ("name", "shape", "offset"):
        assert [getattr(each, part) for each in one.blocks] == [getattr(each, part) for each in other.blocks]
    for phase in TRAINING:
        assert one.built(64)[0].calls_of(phase) == other.built(64)[0].calls_of(phase)
    assert one.initial_state(3).tobytes() == other.initial_state(3).tobytes()


def test_shapes_are_told_of_all_there_is(spec: Any) -> None:
    graph = [{"name": "a", **HIDDEN, "of": "input"}, {"name": "s", "stack": ["a", "a"]},
             {"name": "n", "layer_norm": 1e-3, "of": "s"}, {"name": "u", "unstack": "n"},
             {"name": "d", "dot": ["u", "a"]}]  # fmt: skip
    found = Model(spec(graph=graph)).shapes()
    assert found == {"input": (1, 5), "input.first": (1, 2), "input.rest": (1, 3), "a": (1, 7), "s": (2, 7),
                     "n": (2, 7), "u": (1, 7), "d": (1, 1), "output": (1, 1)}  # fmt: skip
    listed = Model(spec(layers=[HIDDEN, {"cross": 2}], categories=1)).shapes()
    assert listed == {"input": (1, 8), "dense0": (1, 7), "cross0": (1, 7), "output": (1, 1)}


@over("entry", [*map(layers.get, layers.names()), *map(vertices.get, vertices.names())])
def test_each_kind_has_its_rule_in_its_file(entry: Any) -> None:
    assert callable(entry.shape)
