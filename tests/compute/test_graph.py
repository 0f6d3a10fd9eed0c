"""Computation graphs: put in order, pruned, equal to lists of layers; the shapes of their values, and stacked ones."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain.compute import layers, vertices
from streamtrain.compute.backends.cpu import TILE_ROWS
from streamtrain.compute.builder import TRAINING
from streamtrain.compute.graph import Graph
from streamtrain.compute.model import Model
from streamtrain.compute.model_spec import input_shape
from streamtrain.compute.module_spec import inputs_of
from streamtrain.compute.spec import flat
from streamtrain.errors import UserMistake
from tests.compute.shapes import HIDDEN, each_shape


def test_a_list_of_layers_is_the_graph_of_the_same(rig: Any, spec: Any) -> None:
    """To the bit, under the same names."""
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
    """As one layer of both halves of a batch: two towers over the same input are one, twice."""
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
        told = plan.output()[: rigged.rows].copy()
        losses = [rigged.step(plan, learning_rate=0.1) for _ in range(10)]
        views = rigged.model.views(rigged.state)
        kept = {name: views[name].copy() for name in ("h.weight", "h.bias", "a.weight", "b.bias")}
        found.append((told, losses, kept))
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
