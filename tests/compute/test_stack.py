"""Values stacked and taken apart: what layers make of them is what they make of each alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain.compute.backends.cpu import TILE_ROWS
from streamtrain.compute.spec import flat

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
    """Of the batch's rows of weight alone, each as often as it is stacked."""
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
