"""Shapes are inferred before anything is built: what does not fit is told by its place, what fits has equal bits."""

from __future__ import annotations

import re
from typing import Any

import pytest
from looped import over

from streamtrain.compute import layers, vertices
from streamtrain.compute.builder import TRAINING, Builder
from streamtrain.compute.model import Model
from streamtrain.errors import UserMistake
from tests.compute.shapes import HIDDEN, each_shape

A = {"name": "a", **HIDDEN, "of": "input"}
WRONG = [  # vertices, path and kind, expected, got, what to do
    ([A, {"name": "b", "add": ["a", "input"]}],
     "model.graph.b: add of a, input: expected values of as many columns, got [7, 5]; a dense makes as many as"),
    ([A, {"name": "b", "dot": ["a", "input"]}],
     "model.graph.b: dot of a, input: expected values of as many columns, got [7, 5]; a dense"),
    ([{"name": "s", "stack": 2 * ["input"]}, {"name": "b", "concat": ["s", "input"]}],
     "model.graph.b: concat of s, input: expected values with as many rows stacked, got [2, 1]; unstack what"),
    ([{"name": "s", "stack": 2 * ["input"]}, {"name": "b", "unstack": "s", "index": 2}],
     "model.graph.b: unstack of s: expected an index below 2, which are stacked, got 2; set `index` lower"),
    ([{"name": "b", "subset": "input", "first": 3, "end": 6}],
     "model.graph.b: subset of input: expected columns from 0 to 5, got 3 to 6; set `first`"),
    ([{"name": "b", "factorization": "input", "width": 2}],
     "model.graph.b: factorization of input: expected two or more fields of 2 columns, got 5 columns; set `width`"),
    ([{"name": "output", **HIDDEN, "of": "input"}],
     "model.graph.output: expected 1 columns, which the loss takes, got 7; under another name"),
    ([{"name": "s", "stack": 2 * ["input"]}, {"name": "output", "dense": 1, "of": "s"}],
     "model.graph.output: expected a row for each row, got 2; unstack it"),
    ([{"name": "b", **HIDDEN, "of": "input.wide"}],
     "model.graph.input.wide: subset of input: expected columns from 0 to 5, got 2 to 9; set"),
    ([A, *({"name": f"c{at}", "concat": [f"c{at - 1}" if at else "a"] * 16} for at in range(9))],
     "model.graph.c3: concat of c2, c2, c2, c2, c2, c2, c2, c2, c2, c2, c2, c2, c2, c2, c2, c2: expected at most 65535 "
     "columns, got 458752; make what it reads narrower"),
]  # fmt: skip


@over(("graph", "message"), WRONG, ids=[str(at) for at in range(len(WRONG))])
def test_what_does_not_fit_is_told_before_anything_is_built(
    spec: Any, monkeypatch: pytest.MonkeyPatch, graph: Any, message: str
) -> None:
    def built(*given: Any, **named: Any) -> None:
        raise AssertionError("something is built")

    for name in ("call", "buffer", "parameter", "table"):
        monkeypatch.setattr(Builder, name, built)
    told = spec(graph=graph)
    told["graph"]["columns"] = [["first", 0, 2], *([["wide", 2, 9]] if "wide" in message else [])]
    with pytest.raises(UserMistake, match=re.escape(message)):
        Model(told)


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
    graph = [A, {"name": "s", "stack": ["a", "a"]}, {"name": "n", "layer_norm": 1e-3, "of": "s"},
             {"name": "u", "unstack": "n"}, {"name": "d", "dot": ["u", "a"]}]  # fmt: skip
    found = Model(spec(graph=graph)).shapes()
    assert found == {"input": (1, 5), "input.first": (1, 2), "input.rest": (1, 3), "a": (1, 7), "s": (2, 7),
                     "n": (2, 7), "u": (1, 7), "d": (1, 1), "output": (1, 1)}  # fmt: skip
    listed = Model(spec(layers=[HIDDEN, {"cross": 2}], categories=1)).shapes()
    assert listed == {"input": (1, 8), "dense0": (1, 7), "cross0": (1, 7), "output": (1, 1)}


@over("entry", [*map(layers.get, layers.names()), *map(vertices.get, vertices.names())])
def test_each_kind_has_its_rule_in_its_file(entry: Any) -> None:
    assert callable(entry.shape)
