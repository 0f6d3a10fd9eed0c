"""Every rule of native/state/rules, its four parts against a slow meaning in NumPy, through real rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import vocabularies
from looped import over

from streamtrain import _native
from streamtrain.compute.moments import MOMENTS
from streamtrain.compute.ops.sketch import CELLS, EDGES, SIDE
from streamtrain.compute.spec import DTYPES
from tests.state.block_rounds import STEPS, Array, BlockRounds, Spec, Worker

RULES = _native.state_rules()
ROUNDS_OF = [(1, [2.0]), (2, [1.0, 0.3]), (3, [5.0, 0.0, 1e-3]), (5, [1.0, 2.0, 3.0, 4.0, 1e9])]   # workers, weights
SHAPES = [(1,), (3,), (17, 1), (5, 13, 3)]   # none fills its cache lines
LEAST_MOVED = 8
STORED = [(rule, dtype) for rule, dtypes in RULES.items() for dtype in dtypes]


# What a rule makes of its block, said slowly: meaning_of_<rule>(start, the workers' values, their weight sums), by what
# follows the block's name where it is published.


def meaning_of_learned(start: Array, values: Sequence[Array], weights: Sequence[float]) -> dict[str, Array]:
    trained = [(value, weight) for value, weight in zip(values, weights, strict=True) if weight > 0]
    if len(trained) < 2:
        return {"": trained[0][0] if trained else start}
    total = sum(weights)
    mean = np.zeros(start.shape)
    for value, weight in trained:
        mean = mean + (weight / total) * value.astype(np.float64)
    return {"": mean.astype(np.float32)}


def meaning_of_outer(start: Array, values: Sequence[Array], weights: Sequence[float]) -> dict[str, Array]:
    """Leaves a block without a parameter as it is, and plateau one without scores: see test_single_rules.py."""
    return {"": start}


meaning_of_plateau = meaning_of_outer


def meaning_of_local(start: Array, values: Sequence[Array], weights: Sequence[float]) -> dict[str, Array]:
    return {f"@{worker}": value[None] for worker, value in enumerate(values)}


def meaning_of_sum(start: Array, values: Sequence[Array], weights: Sequence[float]) -> dict[str, Array]:
    total = start.copy()
    for value in values:
        total = total + value
    return {"": total}


def meaning_of_highest(start: Array, values: Sequence[Array], weights: Sequence[float]) -> dict[str, Array]:
    """A worker's steps count from the base on, whatever its share held; here each that has a batch takes one."""
    return {"": start + int(any(weight > 0 for weight in weights))}


def meaning_of_moments(start: Array, values: Sequence[Array], weights: Sequence[float]) -> dict[str, Array]:
    return {"": np.array([after_round(was, shares) for was, *shares in zip(start, *values, strict=True)])}


def merged(into: list[float], count: float, mean: float, squares: float) -> list[float]:
    """(count, mean, squares) of both (Chan, Golub and LeVeque 1979)."""
    if not count > 0:
        return into
    total, delta = into[0] + count, mean - into[1]
    return [total, into[1] + delta * (count / total), into[2] + (squares + delta * delta * (into[0] * count / total))]


def by_squaring(base: float, exponent: int) -> float:
    result = 1.0
    for bit in reversed(f"{exponent:b}"):
        result, base = result * base if bit == "1" else result, base * base
    return result


def after_round(start: Array, shares: Sequence[Array]) -> list[float]:
    """A column's moments after a round, from those before and every worker's share."""
    was, held, raw = dict(zip(MOMENTS, start.tolist(), strict=True)), [0.0] * 3, [0.0] * 3
    outside = clipped = least = 0.0
    for share in (dict(zip(MOMENTS, share.tolist(), strict=True)) for share in shares):
        raw = merged(raw, share["count"], share["raw_mean"], share["raw_squares"])
        held = merged(held, share["count"], share["mean"], share["squares"])
        outside, clipped = outside + share["outside"], clipped + share["clipped"]
        least = min((distance for distance in (share["least"], least) if distance > 0), default=0.0)
    if held[0] == 0:
        return start.tolist()
    if was["half_life"] > 0:
        kept = by_squaring(1 - math.log(2) / was["half_life"], int(held[0]))
        was |= {name: was[name] * kept for name in ("count", "squares", "outside")}
    most = 2 * outside > held[0]
    wrong_before = most and outside > was["count"]
    moved = wrong_before or (most and outside >= LEAST_MOVED)
    if wrong_before:
        was |= {"count": 0.0, "mean": 0.0, "squares": 0.0}
    before = [was["count"], was["mean"], was["squares"]]
    was["count"], was["mean"], was["squares"] = merged(before, *(raw if moved else held))
    if not moved:
        was["outside"] += outside
        was["least"] = min((distance for distance in (least, was["least"]) if distance > 0), default=0.0)
    was["clipped"] += clipped
    return [was[name] for name in MOMENTS]


def meaning_of_extremes(start: Array, values: Sequence[Array], weights: Sequence[float]) -> dict[str, Array]:
    found = start.copy()
    for value in values:
        for to, its in zip(found.reshape(-1, 3), value.reshape(-1, 3), strict=True):
            if its[0] > 0:
                known = to if to[0] > 0 else its
                to[:] = to[0] + its[0], min(known[1], its[1]), max(known[2], its[2])
    return {"": found}


def meaning_of_decayed(start: Array, values: Sequence[Array], weights: Sequence[float]) -> dict[str, Array]:
    found, newest = start.copy(), max(value[0, 0] for value in values)
    if newest > 0 and found[0, 0] - newest > 1000:
        found[:] = 0
    for value in values:
        if value[0, 0] > 0:
            epoch = max(found[0, 0], value[0, 0])
            mine, its = (0.5 ** (epoch - each[0, 0]) if epoch - each[0, 0] <= 1000 else 0.0 for each in (found, value))
            found[1:] = found[1:] * mine + value[1:] * its
            found[0, :2] = epoch, max(found[0, 1], value[0, 1])
    return {"": found}


def meaning_of_quantiles(start: Array, values: Sequence[Array], weights: Sequence[float]) -> dict[str, Array]:
    found = meaning_of_sum(start, values, weights)[""]
    for row in found:
        edges = len(row) - EDGES
        row[EDGES:] = [quantile(row[:CELLS], (edge + 1) / (edges + 1) * row[CELLS]) if row[CELLS] > 0 else 0
                       for edge in range(edges)]   # fmt: skip
    return {"": found}


def quantile(cells: Array, rank: float) -> float:
    """The value below which so many lie: those of a cell lie evenly from where it begins to where it ends."""
    below = np.concatenate([[0.0], np.cumsum(cells)])
    at = int(min(np.argmax(below[1:] >= rank) if (below[1:] >= rank).any() else CELLS - 1, CELLS - 1))
    away = abs(at - SIDE)
    low, high = bound(away), bound(away + 1)
    if away == 0 or not cells[at] > 0:
        return low if at >= SIDE else -low
    part = (rank - below[at]) / cells[at]
    return low + part * (high - low) if at > SIDE else -high + part * (high - low)


def bound(away: int) -> float:
    """Returns where a cell begins, so many from 0: 2^-32, then 32 steps to each next power of two."""
    power, step = divmod(away - 1, 32)
    return 2.0 ** (power - 32) * (1 + step / 32) if away > 0 else 0.0


MEANINGS: dict[str, Callable[..., dict[str, Array]]] = {
    rule: globals()[f"meaning_of_{rule}"] for rule in RULES if f"meaning_of_{rule}" in globals()
} | {"vocabulary": vocabularies.meaning}


def test_every_rule_has_a_meaning_here() -> None:
    assert set(MEANINGS) == set(RULES), "give the new rule its meaning_of_<rule>"


def shapes_of(rule: str) -> list[tuple[int, ...]]:
    if rule == "vocabulary":
        return vocabularies.SHAPES
    if rule == "decayed":
        return [(2, 3), (5, 2), (51, 4)]
    if rule == "quantiles":
        return [(rows, EDGES + edges) for rows in (1, 3, 17) for edges in (3, 1, 31)]
    widths = {"moments": len(MOMENTS)} if rule == "moments" else {"extremes": 3}
    return [(rows, widths[rule]) for rows in (1, 3, 17)] if rule in widths else SHAPES


def some(rule: str, shape: tuple[int, ...], random: np.random.Generator, dtype: str = "") -> Array:
    """Values whose sums depend on their order."""
    if rule == "moments":
        columns = {name: random.random(shape[0]) for name in MOMENTS}
        columns |= {name: random.integers(0, 60, shape[0]).astype(float) for name in ("count", "outside", "clipped")}
        columns["half_life"] = random.choice([0.0, 100.0], shape[0])
        return np.column_stack([columns[name] for name in MOMENTS])
    if rule == "extremes":
        counts, sides = random.integers(0, 3, shape[0]), np.sort(random.normal(0, 9, (shape[0], 2)))
        return np.column_stack([counts, sides * (counts > 0)[:, None]])
    if rule == "decayed":
        found = random.random(shape) * 9
        found[0] = 0
        found[0, :2] = random.integers(0, 4) * random.choice([1, 1, 700])
        return found
    if rule == "quantiles":
        cells = random.integers(0, 5, (shape[0], CELLS)) * (random.random((shape[0], CELLS)) < 0.01)
        cells *= random.integers(0, 4, (shape[0], 1))
        return np.column_stack([cells, cells.sum(1), np.zeros((shape[0], shape[1] - EDGES))]).astype(float)
    if rule == "vocabulary":
        return vocabularies.some(shape, random)
    stored: Any = DTYPES[dtype or RULES[rule][0]]
    if stored is np.int64:
        return random.integers(0, 1 << 62, shape) >> random.integers(0, 62, shape)   # beyond what a float64 tells apart
    return (random.normal(size=shape) * 10.0 ** random.integers(-8, 8, shape)).astype(stored)


def blocks_of(rule: str, dtype: str = "") -> list[Spec]:
    return [(f"b{at}", "g", rule, shape, dtype) for at, shape in enumerate(shapes_of(rule))]


def drawn(rule: str, blocks: Sequence[Spec], random: np.random.Generator) -> dict[str, Array]:
    return {name: some(rule, shape, random, *dtype) for name, _, _, shape, *dtype in blocks}


def same(found: Array, expected: Array) -> None:
    assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes(), found[found != expected]


def pieces(name: str, mean: dict[str, Array]) -> dict[str, Array]:
    """Returns what is published of a block, by what follows its name."""
    return {key.removeprefix(name): value for key, value in mean.items() if key.partition("@")[0] == name}


@over(("workers", "weights"), ROUNDS_OF)
@over(("rule", "dtype"), STORED)
def test_a_mean_is_what_the_rule_means(rule: str, dtype: str, workers: int, weights: list[float]) -> None:
    random, blocks = np.random.default_rng(workers), blocks_of(rule, dtype)
    run = BlockRounds(blocks, workers, drawn(rule, blocks, random))
    for _ in range(2):   # the second round's start is the first one's mean
        before, given = run.mean(), [drawn(rule, blocks, random) for _ in range(workers)]
        vectors = [
            values if weight > 0 else {name: run.begun(name, worker) for name in values}
            for worker, (values, weight) in enumerate(zip(given, weights, strict=True))
        ]
        found = run.train(given, weights)
        for name, *_ in blocks:
            expected = MEANINGS[rule](before.get(name), [vector[name] for vector in vectors], weights)
            assert pieces(name, found).keys() == expected.keys()
            for suffix, value in expected.items():
                same(found[name + suffix], value)


@over(("rule", "dtype"), STORED)
def test_a_round_begins_from_the_start_as_often_as_it_does(rule: str, dtype: str) -> None:
    random, blocks = np.random.default_rng(7), blocks_of(rule, dtype)
    run = BlockRounds(blocks, 2, drawn(rule, blocks, random))
    run.train([drawn(rule, blocks, random) for _ in range(2)], [1.0, 2.0])
    mean = run.mean()
    for index in range(2):
        for _ in range(2):
            worker = Worker(run.arena, run.layout, index)
            for memory in (worker.state, worker.base):
                for block in memory.values():
                    block[...] = 77   # of a step whose round is begun again, or of the round before
            worker.begin()
            for name, *_ in blocks:
                assert np.array_equal(worker.state[name], run.begun(name, index))
                if name in worker.base:
                    assert np.array_equal(worker.base[name], mean[name])


@over(("rule", "dtype"), STORED)
def test_one_workers_round_is_its_own(rule: str, dtype: str) -> None:
    """The trained values stay as the only worker has them, to the bit; a weight does not matter."""
    blocks = blocks_of(rule, dtype)
    run = BlockRounds(blocks, 1, drawn(rule, blocks, np.random.default_rng(1)))
    given = drawn(rule, blocks, np.random.default_rng(2))
    odd = np.array([-0.0, 1e-45, np.finfo(np.float32).max], np.float32)
    given["b1"] = odd if given["b1"].dtype == np.float32 else given["b1"]
    found = run.train([given], [1e-300])
    for name, *_ in blocks:
        if name not in run.workers[0].base:
            (piece,) = pieces(name, found).values()
            assert piece.tobytes() == given[name].tobytes()


def test_a_vector_beyond_the_caches_has_the_same_mean() -> None:
    """A mean of a million elements or more is streamed past the caches."""
    blocks, random = [("x", "parameters", "learned", ((1 << 20) + 3,))], np.random.default_rng(3)
    run = BlockRounds(blocks, 4, {})
    given, weights = [drawn("learned", blocks, random) for _ in range(4)], [1.0, 2.0, 3.0, 4.0]
    expected = meaning_of_learned(np.zeros(1), [vector["x"] for vector in given], weights)[""]
    assert run.train(given, weights)["x"].tobytes() == expected.tobytes()


@over("rule", ["learned", "sum"])
def test_the_workers_are_added_in_their_order(rule: str) -> None:
    run = BlockRounds([("x", "g", rule, (1,))], 5, {})
    given = [{"x": np.array([value])} for value in (1e30, 1.0, -1e30, 1.0, 1.0)]
    expected = {"learned": np.float32(0.4), "sum": 2.0}[rule]
    assert run.train(given, [1.0] * 5)["x"] == expected


def test_a_round_without_a_row_changes_nothing_that_is_learned() -> None:
    """Also once the mean lies in a buffer that a round before has used."""
    blocks = blocks_of("learned")
    run = BlockRounds(blocks, 2, drawn("learned", blocks, np.random.default_rng(1)))
    for seed in range(3):
        trained = run.train([drawn("learned", blocks, np.random.default_rng(seed))] * 2, [1.0, 1.0])
        idle = run.train([{}, {}], [0.0, 0.0])
        assert all(idle[name].tobytes() == trained[name].tobytes() for name, *_ in blocks)


def test_steps_count_from_the_base_on() -> None:
    run = BlockRounds([], 2, {STEPS[0]: np.array([41])})
    assert run.train([{}, {}], [1.0, 0.0])[STEPS[0]] == [42]
    assert run.train([{}, {}], [0.0, 0.0])[STEPS[0]] == [42]
    assert run.train([{}, {}], [1.0, 1.0])[STEPS[0]] == [43]
