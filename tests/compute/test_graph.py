"""Computation graphs: put in order, pruned, equal to lists of layers, and refused where they are none."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streamtrain.compute.graph import Graph
from streamtrain.compute.model import Model
from streamtrain.compute.model_spec import input_shape
from streamtrain.compute.module_spec import inputs_of
from streamtrain.errors import UserMistake

RELU = {"dense": 7, "activation": "relu"}


def test_a_list_of_layers_is_the_graph_of_the_same(rig: Any, spec: Any) -> None:
    """To the bit, under the same names."""
    chain = rig(spec(layers=[RELU, {"dense": 4, "activation": "tanh"}], categories=2, standardize=True))
    vertices = [{"name": "dense1", "dense": 4, "activation": "tanh", "of": "dense0"},
                {"name": "dense0", **RELU, "of": "input"}]  # fmt: skip
    graph = rig(spec(graph=vertices, categories=2, standardize=True))
    assert [block.name for block in chain.model.blocks] == [block.name for block in graph.model.blocks]
    for each in (chain, graph):
        plan = each.plan()
        for _ in range(3):
            each.step(plan)
    assert chain.state.tobytes() == graph.state.tobytes() and chain.share.tobytes() == graph.share.tobytes()


def test_leaving_it_out_changes_nothing_else(rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what nothing reads computed too, in the midst of others and with draws of its own."""
    graph = [
        {"name": "used", **RELU, "of": "input"}, {"name": "dead", "dense": 9, "activation": "tanh", "of": "used"},
        {"name": "dead2", "dropout": 0.5, "of": "dead"}, {"name": "dead3", "concat": ["dead2", "used"]},
        {"name": "drop", "dropout": 0.3, "of": "used"}, {"name": "last", **RELU, "of": "drop"},
        {"name": "output", "dense": 1, "of": "last"},
    ]  # fmt: skip
    found: list[dict[str, bytes]] = []
    begun: dict[str, Any] = {}
    for prunes in (True, False):
        monkeypatch.setattr(Graph, "prunes", prunes)
        rigged = rig(spec(graph=graph, categories=2, standardize=True))
        for name, view in rigged.model.views(rigged.state).items():
            view[:] = begun.setdefault(name, view.copy())   # tables are drawn behind all dense parameters
        plan = rigged.plan()
        for _ in range(5):
            rigged.step(plan)
        plan.predict(rigged.address)
        views = rigged.model.views(rigged.state)
        assert ("dead.weight" in views) != prunes
        found.append({name: view.tobytes() for name, view in views.items() if "dead" not in name})
        found[-1]["output"] = plan.output()[: rigged.rows].tobytes()
    assert found[0] == found[1]


def test_what_nothing_reads_is_not_computed(spec: Any) -> None:
    used = {"name": "used", **RELU, "of": "input"}
    model = Model(spec(graph=[{"name": "dead", "dense": 99, "of": "used"}, used]))
    names = [vertex.name for vertex in model.whole_graph()]
    assert names == ["used", "dead", "output"]   # the last written is what the output layer reads
    dead, output = {"name": "dead", "dense": 99, "of": "used"}, {"name": "output", "dense": 1, "of": "used"}
    model = Model(spec(graph=[used, dead, output]))
    assert [vertex.name for vertex in model.whole_graph()] == ["used", "output"]
    assert not any("dead" in block.name for block in model.blocks)


def test_gradients_of_several_readers_add_in_one_order(rig: Any, spec: Any) -> None:
    """Of what depends on each other, however it is written."""
    vertices = [
        {"name": "a", **RELU, "of": "input"}, {"name": "b", "dense": 7, "of": "a"},
        {"name": "c", "multiply": ["a", "b"]}, {"name": "d", "add": ["a", "b", "c"]},
        {"name": "output", "dense": 1, "of": "d"},
    ]  # fmt: skip
    bits = set()
    for written in (vertices, vertices[::-1]):
        rigged = rig(spec(graph=written))
        plan = rigged.plan()
        for _ in range(3):
            rigged.step(plan)
        bits.add(rigged.state.tobytes())
    assert len(bits) == 1


def test_a_model_begins_as_the_constant_prediction(rig: Any, spec: Any) -> None:
    """Whatever its outputs are the sum of."""
    rigged = rig(spec(graph=[
        {"name": "a", **RELU, "of": "input"}, {"name": "b", "dense": 1, "of": "a"},
        {"name": "c", "dense": 1, "of": "input"}, {"name": "d", "scale": "c", "by": 0.5},
        {"name": "output", "subtract": ["b", "d"]},
    ]))  # fmt: skip
    start = rigged.model.views(rigged.model.initial_state(3))
    assert not start["b.weight"].any() and not start["c.weight"].any() and start["a.weight"].any()


def test_a_shared_layer_has_the_sum_of_its_gradients(rig: Any, spec: Any) -> None:
    """As one layer of both halves of a batch: two towers over the same input are one, twice."""
    towers = [
        {"name": "a", **RELU, "of": "input"}, {"name": "b", "like": "a", "of": "input"},
        {"name": "c", "dense": 1, "of": "a"}, {"name": "d", "like": "c", "of": "b"},
        {"name": "output", "add": ["c", "d"]},
    ]  # fmt: skip
    once = [{"name": "a", **RELU, "of": "input"}, {"name": "c", "dense": 1, "of": "a"},
            {"name": "output", "scale": "c", "by": 2}]  # fmt: skip
    states = []
    for vertices in (towers, once):
        rigged = rig(spec(graph=vertices, optimizer="sgd"))
        plan = rigged.plan()
        for _ in range(4):
            rigged.step(plan, learning_rate=0.1)
        states.append({name: view.copy() for name, view in rigged.model.views(rigged.state).items()})
    assert states[0].keys() == states[1].keys()
    for name in ("a.weight", "a.bias", "c.weight"):
        np.testing.assert_allclose(states[0][name], states[1][name], rtol=1e-4, atol=1e-6)


def test_a_start_depends_on_names_alone(spec: Any) -> None:
    one, other = (Model(spec(graph=[{"name": name, **RELU, "of": "input"}])) for name in ("a", "b"))
    states = [model.views(model.initial_state(1)) for model in (one, other)]
    assert np.array_equal(states[0]["a.weight"], states[1]["b.weight"])


def test_a_graph_of_any_shape_is_read_in_its_own_time(spec: Any) -> None:
    """A long chain written backwards; sums of sums, of which there are 2^60 ways to the head."""
    chain = [{"name": "v0", **RELU, "of": "input"}]
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


def graph_of(vertices: Any) -> Graph:
    return Graph.of_dict({"columns": [], "vertices": vertices})


def test_a_column_called_numbers_is_that_column(spec: Any) -> None:
    shape = input_shape(spec(numbers=2, categories=1))
    named = replace(shape, categories=(replace(shape.categories[0], name="numbers"),))
    first, end = 2, 2 + shape.categories[0].embed
    assert inputs_of(shape, ["a", "b"], 1).columns["numbers"] == slice(0, 2)
    assert inputs_of(named, ["a", "b"], 1).columns["numbers"] == slice(first, end)
    assert inputs_of(shape, ["a", "numbers"], 1).columns["numbers"] == slice(1, 2)
