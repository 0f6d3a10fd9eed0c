"""A model spec that does not fit is refused by its place, with the expected and the found, before anything is built."""

from __future__ import annotations

import re
from typing import Any

import pytest
from looped import over

from streamtrain.compute.builder import Builder
from streamtrain.compute.model import Model
from streamtrain.errors import UserMistake
from tests.compute.conftest import bag_of, spec_of
from tests.compute.shapes import HIDDEN

A = {"name": "a", **HIDDEN, "of": "input"}
TWO = [{"name": "a", "dense": 4, "of": "input.first"}, {"name": "b", "dense": 4, "of": "input.rest"}]
STACK = [*TWO, {"name": "s", "stack": ["a", "b"]}]
FIELDS = {"name": "f", "dense": 12, "of": "input"}
LATE = ("late", "binary_cross_entropy", {"partial": True})
COUNT = {"name": "n", "transform": "count", "buckets": 7, "embed": 0, "settings": {"count": "x"}}

# in a message … stands for any text
CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"loss": "log"}, "loss: expected one of …binary_cross_entropy…, got 'log'"),
    ({"loss": "mean_square_error"}, "did you mean 'mean_squared_error'"),
    ({"layers": [{"dens": 3}]}, "model.layers[0]: expected a layer, one of …dense…, got"),
    ({"layers": [{"dense": 0}]}, "model.layers[0].dense: expected a whole number from 1"),
    ({"layers": [{"dense": 3, "activation": "sel"}]}, "layers[0].activation: expected one of none, …relu…'sel'"),
    ({"layers": [{"dense": 3, "init": "xavier"}]}, "expected one of auto, glorot_normal, …got 'xavier'"),
    ({"layers": [{"dense": 3, "drop": 0.5}]}, "layers[0].drop: unknown option of dense; allowed: dense, activation"),
    ({"layers": [{"activation": "relu"}]}, "model.layers[0]: expected a layer, one of …dense…, got"),
    ({"layers": "dense"}, "model.layers: expected a list"),
    ({"input": {"numbers": 0}}, "model.input: expected 1 to"),
    ({"input": {"numbers": 2, "standardize": [True]}}, "input.standardize: expected 2 flags"),
    ({"input": {"numbers": 1 << 40}}, "input.numbers: expected a whole number"),
    ({"input": {"categories": [{"name": "a", "buckets": 0}]}}, "categories[0].buckets"),
    ({"input": {"categories": [{"name": "a", "buckets": 2}] * 2}}, "names that differ"),
    ({"input": {"categories": [{"name": "a", "buckets": 2, "embed": 2, "init": "xavier"}]}},
     "model.input.categories[0].init: expected one of auto, …got 'xavier'"),
    ({"input": {"numbers": 5, "bags": [{**bag_of(2), "pool": "max"}]}},
     "bags[0].pool: expected one of sum, mean, max, max with embed above 0"),
    ({"input": {"numbers": 5}, "loss": "softmax_cross_entropy"}, "input.classes: expected 2 or more"),
    ({"optimizer": {"name": "adom"}}, "optimizer: expected one of adadelta…did you mean 'adam'"),
    ({"graph": {"columns": [["a", 3, 2]], "vertices": [A]}}, "expected columns as [name, first, end]"),
]  # fmt: skip
OPTIMIZERS: list[tuple[dict[str, Any], str]] = [
    ({"beta3": 1}, "model.optimizer.beta3: unknown setting of adam; allowed: beta1, beta2, epsilon"),
    ({"beta1": 1}, "model.optimizer.beta1: expected a number from 0 below 1, got 1"),
    ({"epsilon": float("nan")}, "model.optimizer.epsilon: expected a number from 0, got nan"),
    ({"l3": 1}, "model.optimizer.l3: unknown setting of adam; allowed: …l1, l2…groups"),
    ({"l1": -1}, "model.optimizer.l1: expected a number from 0, got -1"),
    ({"groups": 3}, "model.optimizer.groups: expected tables of settings of weight, bias, norm, embedding, got 3"),
    ({"groups": {"biases": {}}}, "model.optimizer.groups.biases: …of parameters there are weight, bias"),
    ({"groups": {"bias": 3}}, "model.optimizer.groups.bias: expected a table of settings, got 3"),
    ({"groups": {"bias": {"beta1": 2}}}, "model.optimizer.groups.bias.beta1: expected a number from 0 below 1, got 2"),
    ({"groups": {"bias": {"groups": {}}}}, "model.optimizer.groups.bias.groups: unknown setting of adam"),
    ({"name": "sgd", "groups": {"bias": {"momentum": 0.5}}}, "groups.bias: expected settings with which sgd keeps"),
]
STATEFUL: list[tuple[dict[str, Any], str]] = [
    ({"transform": "counts"}, "did you mean 'count'"),
    ({"buckets": 0}, "buckets: expected a whole number from 1"),
    ({"settings": {"count": "x", "as": "logs"}}, "as: expected one of log, share, number, got 'logs'"),
    ({"settings": {"count": "x", "prior": 2}}, "unknown setting of count"),
    ({"embed": 4}, "embed: expected one where it makes indexes"),
    ({"settings": None}, "expected a table with name"),
    ({"name": 3}, "name: expected a name"),
]
GRAPHS: list[tuple[Any, str]] = [
    (3, "model.graph: expected a table of vertices, got 3"),
    ([3], "model.graph: expected a table of vertices"),
    ([{"dense": 3}],
     "model.graph: expected names of letters, digits and _, no digit first, each once, none of them input, got None"),
    ([{**A, "name": "2nd"}], "no digit first…got '2nd'"),
    ([{**A, "name": "input"}], "none of them input, got 'input'"),
    ([{**A, "name": "a.b"}], "names of letters, digits and _…got 'a.b'"),
    ([A] * 2, "each once…got 'a'"),
    ([{"name": "a", "of": "input"}], "model.graph.a: expected one of …dense…concat…, got {'of': 'input'}"),
    ([{"name": "a", "dense": 3, "add": ["input"]}], "model.graph.a: expected one of …, got ['dense', 'add']"),
    ([{**A, "dense": 0}], "model.graph.a: expected a whole number from 1 to …, got 0"),
    ([{**A, "of": "inptu"}], "model.graph.a: expected input, input.<column> or the name of a vertex, got 'inptu'"),
    ([{**A, "of": "input.x"}], "model.graph.a: expected input, input.<column> or the name"),
    ([{"name": "a", "dense": 3}], "model.graph.a: expected the name of what it reads, …, got None"),
    ([{**A, "of": ["input", "input.first"]}], "model.graph.a: expected 1 to read, got"),
    ([{"name": "a", "stack": ["input"] * 65}], "model.graph.a: expected at most 64 to read, got 65"),
    ([{"name": "a", "add": "input"}], "model.graph.a: expected 2 or more to read, got 'input'"),
    ([{"name": "a", "add": ["input", "b"]}, {"name": "b", "scale": "c", "by": 2}, {"name": "c", "shift": "a", "by": 1}],
     "model.graph.a: expected no way back to itself, got 'a <- b <- c <- a'"),
    ([{"name": "a", "scale": "a", "by": 2}], "expected no way back to itself, got 'a <- a'"),
    ([{"name": "a", "like": "b", "of": "input"}, {"name": "b", "scale": "input", "by": 2}],
     "model.graph.a: expected the name of a layer with parameters of its own, got 'b'"),
    ([A, {"name": "b", "like": ["a"], "of": "input"}],
     "model.graph.b: expected the name of a layer with parameters of its own, got ['a']"),
    ([A, {"name": "b", "like": "a", "of": "input", "size": 3}], "model.graph.b: unknown option beside like"),
    ([A, {"name": "b", "like": "a", "of": "a"}],
     "model.graph.b: dense of a: expected a shared a.weight of [5, 7], got [7, 7]"),
    ([{"name": "a", "scale": "input", "to": 2}], "model.graph.a: unknown option of scale; allowed: by"),
    ([{"name": "output", "subset": "input", "end": 1}], "model.graph.output: expected one that depends on a parameter"),
    ([A, {"name": "b", "add": ["a", "input"]}],
     "model.graph.b: add of a, input: expected values of as many columns, got [7, 5]; a dense makes as many as"),
    ([A, {"name": "nobodys", "add": ["a", "input"]}, {"name": "output", "dense": 1, "of": "a"}],
     "model.graph.nobodys: add of a, input: expected values of as many columns, got [7, 5]"),
    ([A, {"name": "b", "dot": ["a", "input"]}],
     "model.graph.b: dot of a, input: expected values of as many columns, got [7, 5]; a dense"),
    ([*STACK, {"name": "c", "stack": ["a", "input"]}], "expected values of as many columns, got [4, 5]"),
    ([*STACK, {"name": "c", "concat": ["s", "a"]}],
     "model.graph.c: concat of s, a: expected values with as many rows stacked, got [2, 1]; unstack what"),
    ([*STACK, {"name": "c", "add": ["a", "s"]}], "model.graph.c: add of a, s: expected"),
    ([*STACK, {"name": "c", "unstack": "s", "index": 2}],
     "model.graph.c: unstack of s: expected an index below 2, which are stacked, got 2; set `index` lower"),
    ([*TWO, {"name": "output", "stack": ["a", "b"]}], "model.graph.output: expected 1 columns"),
    ([*STACK, {"name": "output", "dense": 1, "of": "s"}],
     "model.graph.output: expected a row for each row, got 2; unstack it"),
    ([{"name": "output", **HIDDEN, "of": "input"}],
     "model.graph.output: expected 1 columns, which the loss takes, got 7; under another name"),
    ([{"name": "b", "subset": "input", "first": 3, "end": 6}],
     "model.graph.b: subset of input: expected columns from 0 to 5, got 3 to 6; set `first`"),
    ([{**A, "of": "input.wide"}],
     "model.graph.input.wide: subset of input: expected columns from 0 to 5, got 2 to 9; set"),
    ([{"name": "b", "factorization": "input", "width": 2}],
     "model.graph.b: factorization of input: expected two or more fields of 2 columns, got 5 columns; set `width`"),
    *(([FIELDS, {"name": "b", "factorization": "f", "width": width}],
       f"model.graph.b: factorization of f: expected two or more fields of {width} columns, got 12")
      for width in (12, 13)),
    ([A, *({"name": f"c{at}", "concat": [f"c{at - 1}" if at else "a"] * 16} for at in range(9))],
     f"model.graph.c3: concat of {', '.join(['c2'] * 16)}: expected at most 65535 columns, got 458752; make what it"),
]  # fmt: skip
HEADS: list[tuple[list[Any], list[dict[str, Any]], str]] = [
    ([LATE, LATE], [], "model.heads: expected the labels' names, each once"),
    ([("late", "huber", {"weight": 0})], [], "model.heads[0].weight: expected a number above 0, got 0"),
    ([("late", "huber", {"weight": float("inf")})], [], "model.heads[0].weight: expected a number above 0"),
    ([LATE, ("x", "huber", {"of": "a"})], [], "model.heads[1].of: expected none without [model.graph]"),
    ([("late", "huber", {"of": "b"})], [A],
     "model.heads[0].of: expected input, input.<column> or the name of a vertex, got 'b'"),
    ([("a", "huber", {"of": "a"})], [{**A, "dense": 1}],
     "model.heads[0].of: expected none: the vertex called a is what the loss takes"),
    ([LATE], [{**A, "name": "output"}], "model.graph.output: expected no vertex of that name"),
    ([("late", "huber", {})], [{**A, "name": "late"}],
     "model.graph.late: expected 1 columns, which the loss takes, got 7"),
    ([("late", "huber", {"loss": {"name": "huber", "delta": -1}})], [], "model.heads[0].loss.delta"),
]  # fmt: skip
WHILE_BUILT = ("a.weight of [5, 7], got [7, 7]", "depends on a parameter")
COLUMNS, WIDE = [["first", 0, 2], ["rest", 2, 5]], [["wide", 2, 9]]
CASES = [
    *((spec_of() | change, message) for change, message in CHANGES),
    *((spec_of() | {"optimizer": {"name": "adam", **given}}, message) for given, message in OPTIMIZERS),
    *((spec_of(held=[{**COUNT, **change}]), message) for change, message in STATEFUL),
    *((spec_of() | {"graph": {"columns": COLUMNS + WIDE * ("wide" in message), "vertices": given}}, message)
      for given, message in GRAPHS),
    *((spec_of(heads=heads, graph=graph), message) for heads, graph, message in HEADS),
    (spec_of(heads=[LATE]) | {"torch": {"module": "Net"}}, "model.heads: expected none beside a PyTorch module"),
    (spec_of(graph=[A], layers=[HIDDEN]), "model.graph: expected none beside layers, which are the whole network"),
]  # fmt: skip


@over(("given", "message"), CASES, ids=[message for _, message in CASES])
def test_what_does_not_fit_is_refused_by_its_place(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], message: str
) -> None:
    def built(*arguments: Any, **named: Any) -> None:
        raise AssertionError("something is built")

    with monkeypatch.context() as patch:
        for name in ("call", "buffer", "parameter", "table") if not message.endswith(WHILE_BUILT) else ():
            patch.setattr(Builder, name, built)
        with pytest.raises(UserMistake, match=".*".join(map(re.escape, message.split("…")))):
            Model(given)
