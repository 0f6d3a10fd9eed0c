"""The outer step: Nesterov's on the mean's distance from the round's start, said slowly."""

from __future__ import annotations

import numpy as np
import pytest

from streamtrain import _native
from tests.state.block_rounds import Array, BlockRounds, Spec

RATE, MOMENTUM = 0.9, 0.6
SETTINGS: Spec = (_native.OUTER_SETTINGS, "optimizer", "sum", (2,))
VELOCITY = _native.OUTER_VELOCITY
CHOSEN = {SETTINGS[0]: np.array([RATE, MOMENTUM])}
BLOCKS: list[Spec] = [
    ("a", "parameters", "learned", (3, 5)), ("table", "parameters", "learned", (4, 2)),
    (f"{VELOCITY}a", "optimizer", "outer", (3, 5)), SETTINGS,
]  # fmt: skip


def stepped(start: Array, mean: Array, velocity: Array) -> tuple[Array, Array]:
    way = start.astype(np.float64) - mean
    velocity = (MOMENTUM * velocity.astype(np.float64) + way).astype(np.float32)
    return (start - RATE * (way + MOMENTUM * velocity.astype(np.float64))).astype(np.float32), velocity


def test_it_goes_on_from_round_to_round() -> None:
    random = np.random.default_rng(1)
    start = {"a": random.normal(size=(3, 5)).astype(np.float32)}
    run = BlockRounds(BLOCKS, 2, start | CHOSEN)
    at, velocity = start["a"], np.zeros((3, 5), np.float32)
    for _ in range(4):
        given = [{name: random.normal(size=shape).astype(np.float32) for name, _, _, shape in BLOCKS[:2]}
                 for _ in range(2)]   # fmt: skip
        weights = [1.0, 3.0]
        wide = [{name: value.astype(np.float64) for name, value in each.items()} for each in given]
        mean = (0.25 * wide[0]["a"] + 0.75 * wide[1]["a"]).astype(np.float32)
        at, velocity = stepped(at, mean, velocity)
        found = run.train(given, weights)
        assert found["a"].tobytes() == at.tobytes()
        assert found[f"{VELOCITY}a"].tobytes() == velocity.tobytes()
        table = (0.25 * wide[0]["table"] + 0.75 * wide[1]["table"]).astype(np.float32)
        assert found["table"].tobytes() == table.tobytes()   # has no velocity: the mean
    idle = run.train([{}, {}], [0.0, 0.0])
    assert idle["a"].tobytes() == at.tobytes() and idle[f"{VELOCITY}a"].tobytes() == velocity.tobytes()


@pytest.mark.parametrize("largest", [3e38, -3e38])
def test_a_step_out_of_range_is_the_mean(largest: float) -> None:
    run = BlockRounds(BLOCKS, 1, {"a": np.full((3, 5), -largest, np.float32)} | CHOSEN)
    for _ in range(3):
        found = run.train([{"a": np.full((3, 5), largest, np.float32)}], [1.0])
        assert np.isfinite(found["a"]).all() and np.isfinite(found[f"{VELOCITY}a"]).all()
    assert (found["a"] == np.float32(largest)).all()


def test_of_one_worker_with_rate_1_and_no_momentum_it_is_what_the_worker_has() -> None:
    run = BlockRounds(BLOCKS, 1, {SETTINGS[0]: np.array([1.0, 0.0])})
    given = np.random.default_rng(2).normal(size=(3, 5)).astype(np.float32)
    assert run.train([{"a": given}], [1.0])["a"].tobytes() == given.tobytes()
