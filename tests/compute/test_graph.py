"""Computation graphs: put in order, pruned, equal to lists of layers, stacked; and specs that do not fit, which are
refused by their place, with the expected and the found, before anything is built. Registries, and the settings declared
in them."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute import backends, layers, optimizers, vertices
from streamtrain.compute.backends.cpu import TILE_ROWS
from streamtrain.compute.builder import TRAINING, Builder
from streamtrain.compute.graph import Graph
from streamtrain.compute.model import Model
from streamtrain.compute.model_spec import input_shape
from streamtrain.compute.module_spec import inputs_of
from streamtrain.compute.options import Flag, Number, Option, Problem, Several, Whole, Word, problems, read
from streamtrain.compute.spec import flat
from streamtrain.errors import UserMistake
from tests.compute.conftest import bag_of, spec_of
from tests.compute.shapes import HIDDEN, each_shape


def test_a_list_of_layers_is_the_graph_of_the_same(rig: Any, spec: Any) -> None:
    """Checks that the bits are equal, under the same names."""
    chain = rig(spec(layers=[HIDDEN, {"dense": 4, "activation": "tanh"}], categories=2, standardize=True))
    network = [{"name": "dense1", "dense": 4, "activation": "tanh", "of": "dense0"},
                {"name": "dense0", **HIDDEN, "of": "input"}]  # fmt: skip
    graph = rig(spec(graph=network, categories=2, standardize=True))
    assert [block.name for block in chain.model.blocks] == [block.name for block in graph.model.blocks]
    for each in (chain, graph):
        each.train()
    assert chain.state.tobytes() == graph.state.tobytes() and chain.share.tobytes() == graph.share.tobytes()


def test_leaving_it_out_changes_nothing_else(rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what nothing reads computed too, in the midst of others and with draws of its own."""
    graph = [
        {"name": "used", **HIDDEN, "of": "input"}, {"name": "dead", "dense": 9, "activation": "tanh", "of": "used"},
        {"name": "dead2", "dropout": 0.5, "of": "dead"}, {"name": "dead3", "concat": ["dead2", "used"]},
        {"name": "drop", "dropout": 0.3, "of": "used"}, {"name": "last", **HIDDEN, "of": "drop"},
        {"name": "output", "dense": 1, "of": "last"},
    ]  # fmt: skip
    found: list[dict[str, bytes]] = []
    begun: dict[str, Any] = {}
    for prunes in (True, False):
        monkeypatch.setattr(Graph, "prunes", prunes)
        rigged = rig(spec(graph=graph, categories=2, standardize=True))
        for name, view in rigged.model.views(rigged.state).items():
            view[:] = begun.setdefault(name, view.copy())   # tables are drawn behind all dense parameters
        plan = rigged.train(5)
        plan.predict(rigged.address)
        views = rigged.model.views(rigged.state)
        assert ("dead.weight" in views) != prunes
        found.append({name: view.tobytes() for name, view in views.items() if "dead" not in name})
        found[-1]["output"] = plan.output()[: rigged.rows].tobytes()
    assert found[0] == found[1]


def test_what_nothing_reads_is_not_computed(spec: Any) -> None:
    used = {"name": "used", **HIDDEN, "of": "input"}
    model = Model(spec(graph=[{"name": "dead", "dense": 99, "of": "used"}, used]))
    names = [vertex.name for vertex in model.whole_graph()]
    assert names == ["used", "dead", "output"]   # the last written is what the output layer reads
    dead, output = {"name": "dead", "dense": 99, "of": "used"}, {"name": "output", "dense": 1, "of": "used"}
    model = Model(spec(graph=[used, dead, output]))
    assert [vertex.name for vertex in model.whole_graph()] == ["used", "output"]
    assert not any("dead" in block.name for block in model.blocks)


def test_gradients_of_several_readers_add_in_one_order(rig: Any, spec: Any) -> None:
    """The order of dependence, however it is written."""
    network = [
        {"name": "a", **HIDDEN, "of": "input"}, {"name": "b", "dense": 7, "of": "a"},
        {"name": "c", "multiply": ["a", "b"]}, {"name": "d", "add": ["a", "b", "c"]},
        {"name": "output", "dense": 1, "of": "d"},
    ]  # fmt: skip
    bits = set()
    for written in (network, network[::-1]):
        rigged = rig(spec(graph=written))
        rigged.train()
        bits.add(rigged.state.tobytes())
    assert len(bits) == 1


def test_a_model_begins_as_the_constant_prediction(rig: Any, spec: Any) -> None:
    """Whatever its outputs are the sum of."""
    rigged = rig(spec(graph=[
        {"name": "a", **HIDDEN, "of": "input"}, {"name": "b", "dense": 1, "of": "a"},
        {"name": "c", "dense": 1, "of": "input"}, {"name": "d", "scale": "c", "by": 0.5},
        {"name": "output", "subtract": ["b", "d"]},
    ]))  # fmt: skip
    start = rigged.model.views(rigged.model.initial_state(3))
    assert not start["b.weight"].any() and not start["c.weight"].any() and start["a.weight"].any()


def test_a_shared_layer_has_the_sum_of_its_gradients(rig: Any, spec: Any) -> None:
    """Tests two towers over the same input, which are one tower twice, like one layer of both halves of a batch."""
    towers = [
        {"name": "a", **HIDDEN, "of": "input"}, {"name": "b", "like": "a", "of": "input"},
        {"name": "c", "dense": 1, "of": "a"}, {"name": "d", "like": "c", "of": "b"},
        {"name": "output", "add": ["c", "d"]},
    ]  # fmt: skip
    once = [{"name": "a", **HIDDEN, "of": "input"}, {"name": "c", "dense": 1, "of": "a"},
            {"name": "output", "scale": "c", "by": 2}]  # fmt: skip
    states = []
    for network in (towers, once):
        rigged = rig(spec(graph=network, optimizer="sgd"))
        plan = rigged.plan()
        for _ in range(4):
            rigged.step(plan, learning_rate=0.1)
        states.append({name: view.copy() for name, view in rigged.model.views(rigged.state).items()})
    assert states[0].keys() == states[1].keys()
    for name in ("a.weight", "a.bias", "c.weight"):
        np.testing.assert_allclose(states[0][name], states[1][name], rtol=1e-4, atol=1e-6)


def test_a_start_depends_on_names_alone(spec: Any) -> None:
    one, other = (Model(spec(graph=[{"name": name, **HIDDEN, "of": "input"}])) for name in ("a", "b"))
    states = [model.views(model.initial_state(1)) for model in (one, other)]
    assert np.array_equal(states[0]["a.weight"], states[1]["b.weight"])


def test_a_graph_of_any_shape_is_read_in_its_own_time(spec: Any) -> None:
    """A long chain written backwards; sums of sums, of which there are 2^60 ways to the head."""
    chain = [{"name": "v0", **HIDDEN, "of": "input"}]
    chain += [{"name": f"v{at}", "scale": f"v{at - 1}", "by": 1} for at in range(1, 3000)]
    begun = time.process_time()
    assert [vertex.name for vertex in graph_of(chain[::-1]).vertices] == [vertex["name"] for vertex in chain]
    head = [{"name": "s0", "dense": 1, "of": "input"}]
    head += [{"name": f"s{at}", "add": [f"s{at - 1}"] * 2} for at in range(1, 60)]
    assert Model(spec(graph=[*head, {"name": "output", "add": ["s59", "s59"]}])).whole_graph()[0].options["zero"]
    circle = [{"name": f"v{at}", "scale": f"v{(at + 1) % 3000}", "by": 1} for at in range(3000)]
    with pytest.raises(UserMistake, match="v0: expected no way back to itself"):
        graph_of(circle)
    assert time.process_time() - begun < 10


def graph_of(network: Any) -> Graph:
    return Graph.of_dict({"columns": [], "vertices": network})


def test_a_column_called_numbers_is_that_column(spec: Any) -> None:
    shape = input_shape(spec(numbers=2, categories=1))
    named = replace(shape, categories=(replace(shape.categories[0], name="numbers"),))
    first, end = 2, 2 + shape.categories[0].embed
    assert inputs_of(shape, ["a", "b"], 1).columns["numbers"] == slice(0, 2)
    assert inputs_of(named, ["a", "b"], 1).columns["numbers"] == slice(first, end)
    assert inputs_of(shape, ["a", "numbers"], 1).columns["numbers"] == slice(1, 2)


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


def test_shapes_of_everything_are_described(spec: Any) -> None:
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


TWO = [{"name": "a", "dense": 4, "of": "input.first"}, {"name": "b", "dense": 4, "of": "input.rest"}]
SHARED = {"dense": 6, "activation": "tanh"}


@over("width", [1, 6, 70])   # the sums of each have a way of their own
@over("rows", [50, 3 * TILE_ROWS // 2])   # of a stack two for each
def test_a_siamese_network_is_one_whose_layers_share_their_parameters(
    rig: Any, spec: Any, rows: int, width: int
) -> None:
    """Predictions to the bit; gradients but for the order of sums."""
    shared = {**SHARED, "dense": width}
    apart = [*TWO, {"name": "h", **shared, "of": "a"}, {"name": "i", "like": "h", "of": "b"},
             {"name": "output", "dot": ["h", "i"]}]  # fmt: skip
    stacked = [*TWO, {"name": "s", "stack": ["a", "b"]}, {"name": "h", **shared, "of": "s"},
               {"name": "u", "unstack": "h"}, {"name": "v", "unstack": "h", "index": 1},
               {"name": "output", "dot": ["u", "v"]}]  # fmt: skip
    found = []
    for graph in (apart, stacked):
        rigged = rig(spec(graph=graph, optimizer="sgd"), rows=rows, capacity=rows + 14)
        plan = rigged.plan()
        plan.predict(rigged.address)
        predictions = plan.output()[: rigged.rows].copy()
        losses = [rigged.step(plan, learning_rate=0.1) for _ in range(10)]
        views = rigged.model.views(rigged.state)
        kept = {name: views[name].copy() for name in ("h.weight", "h.bias", "a.weight", "b.bias")}
        found.append((predictions, losses, kept))
    assert np.array_equal(found[0][0], found[1][0]) and found[0][1] == pytest.approx(found[1][1], rel=1e-5)
    for name, parameter in found[0][2].items():
        np.testing.assert_allclose(parameter, found[1][2][name], rtol=1e-4, atol=1e-6)


def test_batch_norm_of_a_stack_is_over_all_its_rows(rig: Any, spec: Any) -> None:
    """The batch's rows of weight alone, each as often as it is stacked."""
    graph = [{"name": "s", "stack": ["input.first", "input.first"]},
             {"name": "n", "batch_norm": 1e-3, "momentum": 1.0, "of": "s"}, {"name": "u", "unstack": "n"}]  # fmt: skip
    rigged = rig(spec(graph=graph))
    rigged.step(rigged.plan())
    x = rigged.blocks["numbers"][: rigged.rows, :2].astype(np.float64)
    x = x[rigged.blocks["weight"][: rigged.rows, 0] > 0]
    views = rigged.model.views(rigged.state)
    np.testing.assert_allclose(views["n.running_mean"], x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(views["n.running_variance"], np.concatenate([x, x]).var(0, ddof=1), rtol=1e-5)


def test_dropout_draws_for_each_of_the_stacked_rows(rig: Any, spec: Any) -> None:
    """The tiles behind the first go on where it ended: no row of the batch draws what another did."""
    graph = [{"name": "a", "dense": 1, "of": "input"}, {"name": "s", "stack": ["a", "a", "a"]},
             {"name": "d", "dropout": 0.5, "of": "s"}, {"name": "u", "unstack": "d"}]  # fmt: skip
    rigged = rig(spec(graph=graph), rows=300, capacity=300)
    calls = [call for call in flat(rigged.model.program(rigged.layout).phases["train"]) if call.op == "dropout"]
    assert {(call.args[0].times, call.args[1].times) for call in calls} == {(3, 3)}


A = {"name": "a", **HIDDEN, "of": "input"}
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
     "model.graph.b: add of a, input: expected values of as many columns, got [7, 5]; a dense layer makes as many as"),
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
NAMED_COLUMNS, WIDE = [["first", 0, 2], ["rest", 2, 5]], [["wide", 2, 9]]
REFUSED = [
    *((spec_of() | change, message) for change, message in CHANGES),
    *((spec_of() | {"optimizer": {"name": "adam", **given}}, message) for given, message in OPTIMIZERS),
    *((spec_of(held=[{**COUNT, **change}]), message) for change, message in STATEFUL),
    *((spec_of() | {"graph": {"columns": NAMED_COLUMNS + WIDE * ("wide" in message), "vertices": given}}, message)
      for given, message in GRAPHS),
    *((spec_of(heads=heads, graph=graph), message) for heads, graph, message in HEADS),
    (spec_of(heads=[LATE]) | {"torch": {"module": "Net"}}, "model.heads: expected none beside a PyTorch module"),
    (spec_of(graph=[A], layers=[HIDDEN]), "model.graph: expected none beside layers, which are the whole network"),
]  # fmt: skip


@over(("given", "message"), REFUSED, ids=[message for _, message in REFUSED])
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


DECLARED: dict[str, tuple[Option, str]] = {   # each with what it takes, in words
    "size": (Whole(least=1, most=9, help=""), "a whole number from 1 to 9"),
    "rate": (Number(least=0, below=1, default=0.5, help=""), "a number from 0 below 1"),
    "scale": (Number(above=0, most=4, default=1, help=""), "a number above 0 to 4"),
    "any": (Number(default=-3, help=""), "a number"),
    "way": (Word(of=("left", "right"), default="left", help=""), "one of left, right"),
    "loud": (Flag(default=False, help=""), "true or false"),
    "found": (Word(of=lambda: ["late"], default="late", help=""), "one of late"),
    "window": (Several(of=Whole(most=5, help=""), least=2, most=2, default=(1, 2), help=""),
               "an array of 2, each a whole number from 0 to 5"),
    "steps": (Several(of=Whole(most=5, help=""), least=0, most=3, default=(), help=""),
              "an array of 0 to 3, each a whole number from 0 to 5"),
}  # fmt: skip
OPTIONS = {name: option for name, (option, _) in DECLARED.items()}
WORDS = {name: option.takes() for name, option in OPTIONS.items()}
GOOD: list[tuple[str, Any, Any]] = [
    ("size", 1, 1), ("size", 9, 9), ("rate", 0, 0.0), ("rate", 0.999, 0.999), ("scale", 4, 4.0),
    ("any", -1e300, -1e300), ("way", "right", "right"), ("loud", True, True), ("window", [0, 5], (0, 5)),
    ("steps", [], ()), ("steps", (1, 2, 3), (1, 2, 3)),
]  # fmt: skip
WRONG: list[tuple[str, Any]] = [
    ("size", 0), ("size", 10), ("size", 1.0), ("size", True), ("size", "1"), ("rate", -0.1), ("rate", 1),
    ("rate", True), ("rate", math.nan), ("rate", "0"), ("scale", 0), ("scale", 4.1), ("any", math.inf),
    ("any", None), ("loud", 1), ("loud", "true"), ("way", "up"), ("way", 1), ("way", ["left"]),
    ("found", "left"), ("window", [1]), ("window", [1, 2, 3]), ("window", [1, 6]),
    ("window", 1), ("steps", [1.0]), ("steps", "12"),
]  # fmt: skip


def test_each_says_what_it_takes() -> None:
    assert {name: words for name, (_, words) in DECLARED.items()} == WORDS


@over(("name", "given", "value"), GOOD)
def test_read(name: str, given: Any, value: Any) -> None:
    settings = {"size": 3, name: given}
    assert list(problems(settings, OPTIONS, "x")) == []
    found = read(settings, OPTIONS)
    assert found[name] == value and type(found[name]) is type(value) and list(found) == list(OPTIONS)


@over(("name", "given"), WRONG)
def test_refused(name: str, given: Any) -> None:
    found = list(problems({"size": 3, name: given}, OPTIONS, "x"))
    assert found == [Problem(name, WORDS[name], given, OPTIONS[name].names())]
    assert str(found[0]) == f"expected {WORDS[name]}, got {given!r}"


def test_what_is_unknown_and_what_is_missing() -> None:
    unknown, missing = problems({"raet": 1}, OPTIONS, "option of x")
    assert str(unknown) == f"unknown option of x; allowed: {', '.join(OPTIONS)}"
    assert str(next(problems({"raet": 1}, {}, "option of x"))) == "unknown option of x; it takes none"
    assert str(missing) == "missing, expected a whole number from 1 to 9"


@over("kind", layers.names())
def test_the_settings_of_a_layer(kind: str) -> None:
    options = layers.options(kind)
    assert not set(list(options)[1:]) & set(layers.names())   # a table would name two layers
    for example in layers.examples(kind):
        assert list(layers.wrong(example)) == []
        found, settings = layers.parse(example)
        assert found == kind and list(settings) == list(layers.get(kind).OPTIONS)
    for name, option in options.items():
        for word in option.names():
            assert any(example.get(name) == word for example in layers.examples(kind)), (name, word)


@over("name", optimizers.names())
def test_the_settings_of_an_optimizer_all_have_defaults_and_help(name: str) -> None:
    options = optimizers.options(name)
    assert list(problems({}, options, name)) == [] and all(option.help for option in options.values())
    assert not {"name", "learning_rate"} & set(options)


def test_importing_the_engine_imports_no_cupy_and_starts_nothing() -> None:
    code = """
import sys, threading
import streamtrain.compute.model, streamtrain.compute.metrics
from streamtrain.compute import ops, backends
ops.load(); backends.describe()
assert "cupy" not in sys.modules and threading.active_count() == 1
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_kernel_digest_covers_every_header() -> None:
    texts = _native.kernel_texts()
    native = Path(__file__).parents[2] / "native"
    assert {f"kernels/{path.name}" for path in (native / "kernels").glob("*.h")} <= set(texts)
    assert all((native / path).read_text() == text for path, text in texts.items())


def test_choice_of_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends.get("cuda"), "answers", lambda: None)
    assert backends.choose() == "cuda"
    monkeypatch.setattr(backends.get("cuda"), "device_count", lambda: 2)
    assert backends.devices() == 2
    for name, priority in (("CPU", "200"), ("GPU", "-1")):
        with monkeypatch.context() as patched:
            patched.setenv(f"BACKEND_PRIORITY_{name}", priority)
            assert backends.choose() == "cpu" and backends.devices() == 0
    assert backends.choose("cpu") == "cpu"
    assert backends.priority_names().items() >= {("cpu", "BACKEND_PRIORITY_CPU"), ("cuda", "BACKEND_PRIORITY_GPU")}
    monkeypatch.setattr(backends.get("cuda"), "answers", lambda: "no GPU")
    assert backends.choose() == "cpu"
    with pytest.raises(UserMistake, match="backend cuda: no GPU"):
        backends.choose("cuda")
