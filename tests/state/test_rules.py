"""Tests of how state is laid out, and of how its rules average a round, against their meaning in plain Python.

Also those rules that go on from round to round by themselves.
"""

from __future__ import annotations

import functools
import itertools
import math
import mmap
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import vocabularies
from looped import over

from streamtrain import _native
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.moments import MOMENTS
from streamtrain.compute.ops.sketch import CELLS, EDGES
from streamtrain.compute.ops.vocabulary import empty
from streamtrain.compute.schedules import STANDING
from streamtrain.compute.spec import DTYPES
from streamtrain.compute.state import block_view, view, views
from streamtrain.errors import UserMistake
from tests.oracles.ops import tally
from tests.oracles.ops.sketch import SIDE
from tests.oracles.ops.vocabulary import Table, add_value

Array = np.ndarray[Any, Any]
Spec = tuple[Any, ...]   # name, group, rule, shape, and if it is said how it is stored
STEPS: Spec = (_native.OPTIMIZER_STEPS, "optimizer", "highest", (1,))
NOTHING: Mapping[str, str] = {}   # says whose the rows of a block are
SLOTS = _native.SlotLayout.make(1, 1, [("weight", "f32", 1)])


class Worker:
    """One worker's memory, block by block, and the plan that writes what it is given into it."""

    def __init__(self, arena: _native.Arena, layout: _native.StateLayout, index: int) -> None:
        self.rounds = _native.Worker(arena, index)
        state = view(self.rounds.state_address, layout.state_bytes)
        base = view(self.rounds.base_address, layout.statistics_bytes)
        self.state = {block.name: block_view(block, state, block.offset) for block in layout.blocks}
        statistics = [block for block in layout.blocks if block.offset >= layout.learned_bytes]
        self.base = {block.name: block_view(block, base, block.part_offset) for block in statistics}
        self.plan = _native.ForeignPlan(1, 1, {"train": self._train}, lambda: None, lambda: None)
        self._step = _native.StepBlock.at(self.plan.step.address)
        self.values: Mapping[str, Array] = {}
        self.weight = 0.0

    def begin(self) -> None:
        """The open round, of which no slot has come yet."""
        assert self.rounds.run(self.plan, 0.01) == _native.WorkerStatus.WORKING

    def _train(self, slot: int) -> None:
        for name, value in self.values.items():
            self.state[name][...] = value   # a statistics block's share lies in the state as well
        self._step.weight_sum = self.weight


class BlockRounds:
    """`start` is a whole state by block; kept-per-worker blocks begin with it in every worker."""

    def __init__(
        self, blocks: Sequence[Spec], workers: int, start: Mapping[str, Array], rows_of: Mapping[str, str] = NOTHING
    ) -> None:
        specs = ((name, *rest, *[""] * (4 - len(rest)), rows_of.get(name, "")) for name, *rest in (*blocks, STEPS))
        self.layout = _native.StateLayout.make([_native.StateBlockSpec(*spec) for spec in specs])
        self.published = self.layout.published(workers)
        self.arena = _native.Arena.create(
            workers=workers, averaging_frequency=1, slot_count=2 * workers, slot_layout=SLOTS, state_layout=self.layout
        )
        weight = next(block for block in SLOTS.blocks if block.name == "weight").offset
        for slot in range(2 * workers):
            view(self.arena.slot_address(slot) + weight, 4).view(np.float32)[:] = 1
        state = np.zeros(self.layout.state_bytes, np.uint8)
        for name, value in start.items():
            views(self.layout, state)[name][...] = value
        self.layout.begin_lineage(state, workers, view(self.arena.mean_address(0), self.published.state_bytes))
        self.ring, self.ingest = _native.CoordinatorEnd(self.arena), _native.IngestEnd(self.arena)
        self.ring.begin(round=6, learning_rate=0.1)   # not a lineage's first, which has a pass of its own
        self.ring.start()
        self.workers = [Worker(self.arena, self.layout, index) for index in range(workers)]
        self._round = 7

    def train(self, values: Sequence[Mapping[str, Array]], weights: Sequence[float]) -> dict[str, Array]:
        """One round; what is published of its mean. A worker of weight 0 has a batch without rows."""
        first = (self._round - 7) * len(self.workers)
        self.ingest.fill_round(round=self._round, first_slot=first, rows=[int(weight > 0) for weight in weights])
        self._round += 1
        for worker, given, weight in zip(self.workers, values, weights, strict=True):
            worker.values, worker.weight = given, weight
            worker.rounds.run_closed_round(worker.plan)
        return self.mean()

    def mean(self) -> dict[str, Array]:
        """Returns the published part of the newest mean, by block."""
        buffer, _ = self.ring.pin_newest()
        return views(self.published, view(self.arena.mean_address(buffer), self.published.state_bytes).copy())

    def begun(self, name: str, worker: int) -> Array:
        """Returns a worker's vector for a block at the start of the next round, by the newest mean."""
        mean, shape = self.mean(), self.workers[worker].state[name].shape
        if name in self.workers[worker].base:
            return np.zeros(shape, self.workers[worker].base[name].dtype)
        return mean.get(f"{name}@{worker}", mean.get(name)).reshape(shape)


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
    """Leaves a block without a parameter as it is, plateau one without scores, and window every one."""
    return {"": start}


meaning_of_plateau = meaning_of_window = meaning_of_outer


def meaning_of_local(start: Array, values: Sequence[Array], weights: Sequence[float]) -> dict[str, Array]:
    return {f"@{worker}": value[None] for worker, value in enumerate(values)}


def meaning_of_sum(start: Array, values: Sequence[Array], weights: Sequence[float]) -> dict[str, Array]:
    return {"": start + functools.reduce(np.add, values)}


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
    was, stats, raw = dict(zip(MOMENTS, start.tolist(), strict=True)), [0.0] * 3, [0.0] * 3
    outside = clipped = least = 0.0
    for share in (dict(zip(MOMENTS, share.tolist(), strict=True)) for share in shares):
        raw = merged(raw, share["count"], share["raw_mean"], share["raw_squares"])
        stats = merged(stats, share["count"], share["mean"], share["squares"])
        outside, clipped = outside + share["outside"], clipped + share["clipped"]
        least = min((distance for distance in (share["least"], least) if distance > 0), default=0.0)
    if stats[0] == 0:
        return start.tolist()
    if was["half_life"] > 0:
        kept = by_squaring(1 - math.log(2) / was["half_life"], int(stats[0]))
        was |= {name: was[name] * kept for name in ("count", "squares", "outside")}
    most = 2 * outside > stats[0]
    wrong_before = most and outside > was["count"]
    moved = wrong_before or (most and outside >= LEAST_MOVED)
    if wrong_before:
        was |= {"count": 0.0, "mean": 0.0, "squares": 0.0}
    before = [was["count"], was["mean"], was["squares"]]
    was["count"], was["mean"], was["squares"] = merged(before, *(raw if moved else stats))
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
    shares = [value for value in values if value[0, 0] > 0]
    if not shares:
        return {"": start}
    joined = functools.reduce(added, shares)
    return {"": joined if start[0, 0] - joined[0, 0] > 1000 else added(start, joined)}


def added(one: Array, other: Array) -> Array:
    """Sums of the later of two epochs, and of the newest time."""
    epoch, found = max(one[0, 0], other[0, 0]), np.zeros_like(one)
    of_one, of_other = (0.5 ** (epoch - each[0, 0]) if epoch - each[0, 0] <= 1000 else 0.0 for each in (one, other))
    found[1:] = one[1:] * of_one + other[1:] * of_other
    found[0, :2] = epoch, max(one[0, 1], other[0, 1])
    return found


def meaning_of_quantiles(start: Array, values: Sequence[Array], weights: Sequence[float]) -> dict[str, Array]:
    found = meaning_of_sum(start, values, weights)[""]
    for row in found:
        edges = len(row) - EDGES
        row[EDGES:] = [quantile(row[:CELLS], (edge + 1) / (edges + 1) * row[CELLS]) if row[CELLS] > 0 else 0
                       for edge in range(edges)]   # fmt: skip
    return {"": found}


def meaning_of_tally(start: Array, values: Sequence[Array], weights: Sequence[float]) -> dict[str, Array]:
    known, found = {}, np.zeros_like(start)
    full = [each for each in (start, *values) if each[0, 0] == tally.FULL]
    for each in (start, *values):
        for z, *its in each[1 : 1 + int(each[0, 0]) % tally.FULL].tolist():
            known[z] = [a + b for a, b in zip(known.get(z, (0.0, 0.0)), its, strict=True)]
    if full or len(known) > tally.ENTRIES:
        found = tally.of_marks(np.array([*known]), *full)
    else:
        found[0, 0] = len(known)
        found[1 : 1 + len(known)] = [(z, *known[z]) for z in sorted(known)]
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
    if rule == "tally":
        return [tally.empty().shape] * 6
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
    if rule == "tally":
        found, count = tally.empty(), int(random.choice([0, 1, 40, 1500, tally.ENTRIES, tally.FULL]))
        values = np.sort(random.choice(np.arange(-3000, 3000), count, replace=False)) / np.float32(7)
        if count == tally.FULL:
            return tally.of_marks(values)
        found[0, 0], found[1 : 1 + count] = count, np.column_stack([values, random.random((count, 2))])
        return found
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


@over("weights", [[2.0, 0.5], [0.0, 3.0], [0.0, 0.0], [1.0, 2.0, 4.0]])
@over(("rule", "dtype"), [each for each in STORED if each[0] != "local"])   # which is kept for each worker
def test_contributions_joined_first_make_the_same_mean(rule: str, dtype: str, weights: list[float]) -> None:
    """Two workers of one host, or one worker of each of two hosts: only this would see that their bits differ."""
    random = np.random.default_rng(len(weights))
    blocks = [*blocks_of(rule, dtype), *BLOCKS, *SCORED]   # with an outer step and a plateau
    layout = build_layout(blocks)

    def state(values: Mapping[str, Array]) -> Array:
        found = aligned(layout.state_bytes)
        for name, value in values.items():
            views(layout, found)[name][...] = value
        return found

    def mean(contributions: Sequence[tuple[Array, float]]) -> bytes:
        found = aligned(layout.state_bytes)
        given = [(vector.ctypes.data, weight) for vector, weight in contributions]
        _native.average(layout, start.ctypes.data, given, found.ctypes.data)
        return found.tobytes()

    def joined(contributions: Sequence[tuple[Array, float]]) -> tuple[Array, float]:
        found = aligned(layout.state_bytes)
        given = [(vector.ctypes.data, weight) for vector, weight in contributions]
        weight = _native.join(layout, start.ctypes.data, given, found.ctypes.data)
        return found, weight

    def any_state() -> Array:
        return state({name: some(its, shape, random, *dtype) for name, _, its, shape, *dtype in blocks})

    start, workers = any_state(), [(any_state(), weight) for weight in weights]
    one_host, each_a_host = mean([joined(workers)]), mean([joined([worker]) for worker in workers])
    assert mean(workers) == one_host == each_a_host
    assert mean([joined([joined(workers)])]) == one_host


@over(("rule", "dtype"), [each for each in STORED if each[0] != "window"])   # which no step reads
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
                used = emptied = slice(None)
                if rule == "tally":   # entries behind its count, here 77, are nobody's, and marks of the start's
                    used, emptied = slice(1 + int(mean[name][0, 0]) % tally.FULL), slice(1 + 77)
                assert np.array_equal(worker.state[name][emptied], run.begun(name, index)[emptied])
                if name in worker.base:
                    assert np.array_equal(worker.base[name][used], mean[name][used])


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


@over("largest", [3e38, -3e38])
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


NAME, OBJECTIVE = _native.SCHEDULE_STANDING, ("score.objective", "score", "sum", (2,))
SCORED: list[Spec] = [
    (NAME, "optimizer", "plateau", (len(STANDING),)), ("score.loss", "score", "sum", (4,)),
    ("score.rows", "score", "sum", (1,), "i64"),
]  # fmt: skip
PLATEAU = {"threshold": 0.01, "factor": 0.5, "least": 0.1}


def begun(blocks: list[Spec] = SCORED, workers: int = 1, **settings: float) -> BlockRounds:
    found = dict.fromkeys(STANDING, 0.0) | {"left": 1.0, "every": 10, "patience": 1} | PLATEAU | settings
    return BlockRounds(blocks, workers, {NAME: np.array([found[name] for name in STANDING])})


def standing(mean: dict[str, Array]) -> dict[str, float]:
    return dict(zip(STANDING, mean[NAME].tolist(), strict=True))


def scored(loss: float, rows: int, weight: float = 2.0) -> dict[str, Array]:
    """The share of a worker whose rows had that mean loss."""
    return {"score.loss": np.array([loss * rows * weight, rows * weight, 0, 0]), "score.rows": np.array([rows])}


def test_the_model_lays_it_out_as_the_rule_has_it() -> None:
    plain = {"input": {"numbers": 2}, "loss": "mean_squared_error", "optimizer": {"name": "sgd"}}
    settings = {"name": "plateau", "patience": 7, "factor": 0.25, "rows": 500, "threshold": 0.0, "least": 0.5}
    model = Model({**plain, "schedule": settings})
    found = standing({NAME: model.views(model.initial_state(1))[NAME]})
    expected = {"left": 1.0, "every": 500, "patience": 7, "threshold": 0, "factor": 0.25, "least": 0.5}
    assert {name: value for name, value in found.items() if value} == {k: v for k, v in expected.items() if v}
    assert NAME not in [block.name for block in Model(plain).blocks]


@over("workers", [1, 3])
@over("patience", [1, 2, 4])
def test_it_falls_as_pytorchs(workers: int, patience: int) -> None:
    """Theirs waits for one evaluation more than it is told."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=0.5, patience=patience - 1, threshold=0.01, min_lr=0.1, eps=0.0)
    random, falls = np.random.default_rng(patience), set()
    run = begun(workers=workers, every=100, patience=patience)
    for at in range(60):
        loss = 2.0 ** -(min(at, 20) / 10) * random.uniform(0.97, 1.0)
        found = standing(run.train([scored(loss, 120)] * workers, [1.0] * workers))
        theirs.step(loss)
        assert found["left"] == optimizer.param_groups[0]["lr"] and found["evaluations"] == at + 1
        falls.add(found["left"])
    assert min(falls) == 0.1 and len(falls) == 5


def test_an_evaluation_is_of_the_rows_since_the_last() -> None:
    run = begun(workers=2, every=1000)
    for rows, loss, evaluations, left in ((300, 1.0, 0, 1), (150, 3.0, 0, 1), (100, 0.5, 1, 1), (499, 1.2, 1, 1),
                                          (1, 9.0, 2, 1), (700, 1.6, 3, 0.5), (500, 1.0, 4, 0.5)):  # fmt: skip
        found = standing(run.train([scored(loss, rows), scored(loss, rows, 2.0)], [1.0, 1.0]))
        assert (found["evaluations"], found["left"]) == (evaluations, left), (rows, found)
    assert found["best"] == 1.0 and found["rows"] == 4500
    assert standing(run.train([{}, {}], [0.0, 0.0])) == found


def test_a_rounds_rate_is_set_by_its_start() -> None:
    """Asked for again where the round is begun again: by what was left when it began."""
    run, calls = begun(), []

    def rate_of(steps: int, left: float) -> float:
        calls.append((steps, left))
        return 0.1 * left

    run.workers[0].rounds.follow(rate_of)
    for loss in (1.0, 2.0, 0.5, 0.7):
        run.train([scored(loss, 10)], [1.0])
        run.workers[0].begin()
    assert [left for _, left in dict.fromkeys(calls)] == [1, 1, 0.5, 0.5, 0.25]


def test_what_is_minimised_is_what_counts() -> None:
    """A weighted loss, not the log loss beside it."""
    run = begun([*SCORED, OBJECTIVE])
    for objective, left in ((4.0, 1.0), (5.0, 0.5), (3.0, 0.5)):
        share = {**scored(1.0 / objective, 10), OBJECTIVE[0]: np.array([objective * 20, 0.0])}
        assert standing(run.train([share], [1.0]))["left"] == left


def test_rows_without_weight_and_scores_that_are_no_number_are_no_evaluation() -> None:
    run = begun()
    assert standing(run.train([scored(1.0, 10)], [1.0]))["evaluations"] == 1
    assert standing(run.train([scored(1.0, 10, weight=0.0)], [1.0]))["evaluations"] == 1
    found = standing(run.train([scored(0.5, 10)], [1.0]))
    assert found["evaluations"] == 2 and found["best"] == 0.5 and found["left"] == 1


def test_the_least_holds_and_never_raises() -> None:
    run = begun(least=0.3)
    found = [standing(run.train([scored(1.0, 10)], [1.0]))["left"] for _ in range(5)]
    assert found == [1, 0.5, 0.3, 0.3, 0.3]


CAPACITY = 3
TABLES = {"table": "learned", "moments": "learned", "kept": "local"}
OF_WORDS: list[Spec] = [(name, "g", rule, (CAPACITY + 1, 2)) for name, rule in [*TABLES.items(), ("other", "learned")]]


@over("workers", [1, 3])
def test_the_rows_of_what_is_forgotten_are_zero_in_every_block_that_is_its(workers: int) -> None:
    known = empty(CAPACITY, admit=1, evict_ms=10)
    for id_, newest_ms in ((1, 5), (2, 95), (3, 7)):
        Table(known).put(id_, 1000 + id_, 4, newest_ms)
    ones = {name: np.ones((CAPACITY + 1, 2), np.float32) for name, *_ in OF_WORDS}
    blocks: list[Spec] = [*OF_WORDS, ("words", "g", "vocabulary", known.shape)]
    run = BlockRounds(blocks, workers, {"words": known, **ones}, dict.fromkeys(TABLES, "words"))
    share = empty(CAPACITY)
    add_value(Table(share), Table(known), 77, 100)
    idle = {"words": empty(CAPACITY)}
    found = run.train([{**ones, "words": share}, *[{**ones, **idle}] * (workers - 1)], [1.0] * workers)
    assert [entry[0] for entry in Table(found["words"]).entry[:CAPACITY].tolist()] == [77, 1002, 0]
    for name, rule in TABLES.items():
        for worker in range(workers):
            its = found[f"{name}@{worker}"][0] if rule == "local" else found[name]
            assert its.any(axis=1).tolist() == [True, False, True, False], name
    assert found["other"].all()
    again = run.train([{**ones, **idle}] * workers, [1.0] * workers)
    assert all(again[name].all() for name, rule in TABLES.items() if rule == "learned")


def test_a_tally_can_be_cleared_whoever_dies_while_it_is_written() -> None:
    """Only this finds a count that is smaller than what is left behind it: the next round's bits would depend on it."""
    layout = build_layout([("score.distinct", "score", "tally", tally.empty().shape, "")])
    starts = np.zeros((2, layout.state_bytes), np.uint8)
    views(layout, starts[0])["score.distinct"][:] = np.arange(1 + tally.ENTRIES)[:, None] + [[tally.ENTRIES, 0, 0]]
    views(layout, starts[0])["score.distinct"][0] = [tally.ENTRIES, 0, 0]
    mean = np.frombuffer(mmap.mmap(-1, layout.state_bytes), np.uint8)
    folds = np.frombuffer(mmap.mmap(-1, 8), np.int64)
    for kill in range(80):
        folds[0] = 0
        child = os.fork()
        while child == 0:   # until it is killed
            for start in starts:
                _native.average(layout, start.ctypes.data, [], mean.ctypes.data)
            folds[0] += 1
        while folds[0] < 10 + kill:   # so that it is folding
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = views(layout, mean)["score.distinct"]
        assert not found[1 + int(found[0, 0]) :].any(), f"count {found[0, 0]}, kill {kill}"


LAID_OUT = [(1,), (16,), (17, 1), (5, 13, 3), (0, 4), (2, 3, 4, 5), ()]
LINE = _native.CACHE_LINE


def every_rule(reverse: bool = False) -> list[tuple[str, str, str, tuple[int, ...], str]]:
    """A block of every rule, shape and way to be stored, the parts mixed."""
    blocks = [(f"{rule}{at}{dtype}", "g", rule, shape, dtype)
              for at, shape in enumerate(LAID_OUT) for rule, dtypes in RULES.items() for dtype in (*dtypes, "")]
    return blocks[::-1] if reverse else blocks


def build_layout(specs: list[Any]) -> _native.StateLayout:
    return _native.StateLayout.make([_native.StateBlockSpec(*spec) for spec in specs])


@over("reverse", [False, True])
def test_blocks_lie_one_behind_the_other_the_learned_part_first(reverse: bool) -> None:
    specs = every_rule(reverse)
    layout = build_layout(specs)
    given = {name: (rule, shape, dtype) for name, _, rule, shape, dtype in specs}
    end = 0
    for block in layout.blocks:
        rule, shape, dtype = given[block.name]
        assert (block.rule, block.shape, block.dtype, block.group) == (rule, shape, dtype or RULES[rule][0], "g")
        count = int(np.prod(shape, dtype=np.int64))
        assert block.count == count
        assert block.bytes == count * np.dtype(DTYPES[block.dtype]).itemsize
        assert block.offset == end
        in_statistics = block.offset >= layout.learned_bytes and rule not in learned_rules()
        assert block.part_offset == block.offset - (layout.learned_bytes if in_statistics else 0)
        end += -(-block.bytes // LINE) * LINE
    assert layout.state_bytes == end == layout.learned_bytes + layout.statistics_bytes
    names = [block.name for block in layout.blocks]
    learned = [name for name, _, rule, *_ in specs if rule in learned_rules()]
    assert names == learned + [name for name, *_ in specs if name not in learned]


def learned_rules() -> set[str]:
    """Returns the rules trained in place: a block of one alone leaves no statistics part."""
    return {rule for rule in RULES if build_layout([("x", "g", rule, (1,))]).statistics_bytes == 0}


@over("workers", [1, 3])
def test_a_mean_buffer_holds_a_state_and_then_what_each_worker_keeps(workers: int) -> None:
    layout = build_layout(every_rule())
    published = layout.published(workers)
    shared = [block for block in published.blocks if "@" not in block.name]
    kept = [block for block in published.blocks if "@" in block.name]
    assert published.blocks[: len(shared)] and [b.name for b in published.blocks] == [b.name for b in shared + kept]
    offsets = {block.name: block.offset for block in layout.blocks}
    assert all(block.offset == offsets[block.name] for block in shared)
    local = [block for block in layout.blocks if block.name not in {block.name for block in shared}]
    assert [block.name for block in kept] == [f"{b.name}@{worker}" for worker in range(workers) for b in local]
    assert [block.shape for block in kept] == [(1, *block.shape) for _ in range(workers) for block in local]
    end = layout.state_bytes
    for block in kept:
        assert block.offset == end
        end += -(-block.bytes // LINE) * LINE
    assert published.state_bytes == end


def test_a_lineage_begins_with_the_state_in_every_place() -> None:
    layout, workers = build_layout(every_rule()), 3
    state = np.random.default_rng(1).integers(0, 255, layout.state_bytes, np.uint8)
    published = layout.published(workers)
    mean = np.zeros(published.state_bytes, np.uint8)
    layout.begin_lineage(state, workers, mean)
    fresh = views(layout, state)
    for name, block in views(published, mean).items():
        assert block.tobytes() == fresh[name.partition("@")[0]].tobytes()
    for wrong_state, wrong_mean in ((state[:-1].copy(), mean), (state, mean[:-1].copy()), (state, mean.repeat(2))):
        with pytest.raises(UserMistake, match=r"a lineage's .*: expected \d+ bytes, got \d+"):
            layout.begin_lineage(wrong_state, workers, wrong_mean)


def test_a_process_that_attaches_finds_the_same_layout() -> None:
    specs = [spec for spec in every_rule() if not spec[2].startswith("moments")]
    layout = build_layout(specs)
    arena = _native.Arena.create(workers=2, averaging_frequency=1, slot_count=4, slot_layout=SLOTS, state_layout=layout)
    there = _native.Arena.attach(os.dup(arena.descriptor))

    def describe(of: _native.StateLayout) -> list[tuple[object, ...]]:
        return [(b.name, b.group, b.rule, b.dtype, b.shape, b.offset, b.part_offset) for b in of.blocks]

    assert describe(there.state_layout) == describe(layout)
    assert there.state_layout.published(2).state_bytes == layout.published(2).state_bytes


def test_what_cannot_be_laid_out_is_refused() -> None:
    with pytest.raises(UserMistake, match=rf"rule: expected one of {', '.join(sorted(RULES))}, got summ"):
        build_layout([("x", "g", "summ", (1,))])
    kept = build_layout([("x", "g", "local", (1,))])
    with pytest.raises(UserMistake, match="a state that is joined: expected that all of it is averaged"):
        _native.join(kept, 0, [], 0)
    with pytest.raises(UserMistake, match="state block x: dtype, by the rule sum: expected one of f64, i64, got f32"):
        build_layout([("x", "g", "sum", (1,), "f32")])
    with pytest.raises(UserMistake, match="state block x: expected a name of its own"):
        build_layout([("x", "g", rule, (1,)) for rule in itertools.islice(RULES, 2)])
    for name, shape, message in (("x", (1,) * 5, "too many axes: x"), ("x" * 96, (1,), "word is too long: xxx")):
        layout = build_layout([(name, "g", next(iter(RULES)), shape)])
        with pytest.raises(ValueError, match=message):
            _native.Arena.create(workers=1, averaging_frequency=1, slot_count=2, slot_layout=SLOTS, state_layout=layout)
