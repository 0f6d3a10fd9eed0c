"""Figures of a snapshot's blocks, against what NumPy says of the whole of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from streamtrain.ui import block_figures
from streamtrain.ui.block_figures import MOST_ELEMENTS, Change, changes, figures, sampled


def of(name: str, array: Any, **optimizer: Any) -> Any:
    kept = {f"{kind}.{name}": each for kind, each in optimizer.items()}
    return figures({name: array.shape}, sampled({name: array}), sampled(kept))[name]


def test_figures_are_those_of_the_values() -> None:
    array = np.random.default_rng(1).normal(0.5, 2, (30, 7)).astype(np.float32)
    found = of("dense0.weight", array, momentum=array * 3)
    wide = array.astype(np.float64)
    assert found.sampled == 0 and found.touched is None and found.row_norms == ()
    assert found.norm == pytest.approx(np.linalg.norm(wide)) and found.magnitude == pytest.approx(abs(wide).mean())
    assert (found.mean, found.deviation) == (pytest.approx(wide.mean()), pytest.approx(wide.std()))
    assert (found.least, found.largest) == (wide.min(), wide.max())
    assert sum(found.counts) == array.size and len(found.edges) == len(found.counts) + 1
    assert (found.edges[0], found.edges[-1]) == (pytest.approx(wide.min()), pytest.approx(wide.max()))
    assert found.optimizer == {"momentum": pytest.approx(3 * found.magnitude, rel=1e-6)}


def test_rows_of_a_table_that_were_touched() -> None:
    table = np.ones((8, 4), np.float32)
    moments = np.zeros_like(table)
    moments[[1, 6], 2] = 1e-30
    found = of("c.embedding", table, **{"adam.m": np.zeros_like(table), "adam.v": moments})
    assert found.touched == 2 / 8 and found.row_norms == (2.0, 2.0, 2.0)
    assert of("c.embedding", table).touched is None  # the optimizer keeps nothing
    local = np.stack([np.zeros_like(table), moments])  # once for each worker
    assert of("c.embedding", table, momentum=local).touched == 2 / 8


def test_state_is_that_of_the_block_it_names() -> None:
    """A column's name may end with another's."""
    tables = {"age.embedding": np.ones((4, 2), np.float32), "user.age.embedding": np.ones((4, 2), np.float32)}
    state = {f"adam.v.{name}": np.full((4, 2), at, np.float32) for at, name in enumerate(tables)}
    found = figures({name: (4, 2) for name in tables}, tables, state)
    assert [(each.touched, dict(each.optimizer)) for each in found.values()] == [(0, {"adam.v": 0}), (1, {"adam.v": 1})]


def test_a_large_block_is_sampled_and_says_so() -> None:
    rows = MOST_ELEMENTS // 4
    table = np.random.default_rng(2).normal(0, 1, (3 * rows, 8)).astype(np.float32)
    found = of("c.embedding", table, v=np.ones_like(table))
    assert 0 < found.sampled <= rows and found.touched == 1.0
    assert found.norm == pytest.approx(np.linalg.norm(table), rel=0.02)
    wide = of("dense0.weight", np.ones((2, MOST_ELEMENTS), np.float32))
    assert wide.sampled > 0 and wide.norm == pytest.approx(math.sqrt(2 * MOST_ELEMENTS))


@pytest.mark.parametrize("array", [np.zeros((3, 2), np.float32), np.full(1, 7.0, np.float32)])
def test_values_that_are_all_the_same(array: Any) -> None:
    found = of("output.bias", array)
    assert sum(found.counts) == array.size and found.deviation == 0
    assert all(right > left for left, right in zip(found.edges[:-1], found.edges[1:], strict=True))


def test_a_change_between_two_snapshots() -> None:
    old = {"w": np.full((4, 2), 2.0, np.float32), "gone": np.ones(3, np.float32), "other": np.ones(3, np.float32)}
    new = {"w": old["w"].copy(), "other": np.ones(4, np.float32)}
    new["w"][1] += 0.4
    found = changes(old, new, updates=25)
    assert found.keys() == {"w"}
    change = found["w"]
    assert change.magnitude == pytest.approx(0.1 / 2, rel=1e-6) and change.changed == 1 / 4
    assert change.least == pytest.approx(change.magnitude / 25) and change.most == pytest.approx(change.magnitude / 5)
    assert Change(0.5, 0, 1).most == 0.5  # of a lineage that goes on from another's parameters
    assert changes({"w": np.zeros(2, np.float32)}, {"w": np.ones(2, np.float32)}, 1)["w"].magnitude == math.inf


def test_a_step_of_a_size_lies_between_the_two() -> None:
    """Whatever way 400 updates of one length go: all one way, or each its own."""
    random, size = np.random.default_rng(3), 1e-3
    start = random.choice([-1.0, 1.0], 5000)
    for steps in (np.full((400, 5000), size), random.choice([-size, size], (400, 5000))):
        end = start + steps.sum(0)
        change = changes({"w": start}, {"w": end}, 400)["w"]
        assert change.least <= size * 1.01 and change.most >= size * 0.75
    assert block_figures.STEPS == "optimizer.steps"
