"""Threads of one worker, and workers that average, against unconnected copies of a step; and the averaging alone."""

from __future__ import annotations

import ctypes
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute.model import aligned
from streamtrain.compute.state import view
from tests.bench.bed import spawn
from tests.bench.harness import Line, Run, Sides, bench, best_times, least_times, once
from tests.bench.steps import SMALL, WIDE, Network, fill, ours
from tests.train.arena_run import ArenaRun

APART = "unconnected copies"
WORKERS, FREQUENCY = 2, 4
ELEMENTS, VECTORS = 10_000_000, 4


def stepping(network: Network, rows: int, threads: int, pipe: Any) -> None:
    """Gets so many seconds, answers with the rows a second of the clock, and of processor time; until it gets none."""
    step = ours(network, rows, threads=threads)
    step()
    pipe.send(True)
    while seconds := pipe.recv():
        begun, begun_busy, done = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() < begun + seconds:
            step()
            done += rows
        pipe.send((done / (time.perf_counter() - begun), done / (time.process_time() - begun_busy)))


class Side:
    """Processes that step at the same time."""

    def __init__(self, network: Network, rows: int, threads: int, copies: int) -> None:
        self._ends = [spawn.Pipe() for _ in range(copies)]
        for _, theirs in self._ends:
            spawn.Process(target=stepping, args=(network, rows, threads, theirs), daemon=True).start()
        assert all(mine.recv() for mine, _ in self._ends)

    def rates(self, seconds: float) -> tuple[float, float]:
        """Rows a second of all together by the clock, and of one by processor time."""
        for mine, _ in self._ends:
            mine.send(seconds)
        found = [mine.recv() for mine, _ in self._ends]
        return sum(rate for rate, _ in found), statistics.mean(rate for _, rate in found)

    def end(self) -> None:
        for mine, _ in self._ends:
            mine.send(0)


@bench(
    "threads",
    {
        (network,): [
            Line(f"{network.name}, 4096 rows, best turns", "clock", f"{APART}, clock", 0.9),
            Line(f"{network.name}, 4096 rows, processor time", "busy", f"{APART}, busy"),
            Line(f"{network.name}, 4096 rows, median of the turns", "median", f"{APART}, median"),
        ]
        for network in (SMALL, WIDE)
    },
    once, "rows/s", {"turns": 2}, seconds=60.0, turns=15, rows=4096,
)  # fmt: skip
def threads(run: Run, network: Network) -> Sides:
    """Two threads of one worker on a step, against two unconnected copies with one thread each, in processes of their
    own."""
    count = min(2, len(os.sched_getaffinity(0)))
    sides = {"": Side(network, run.rows, count, 1), f"{APART}, ": Side(network, run.rows, 1, count)}
    turns = [{name: side.rates(run.seconds / run.turns / 2) for name, side in sides.items()} for _ in range(run.turns)]
    for side in sides.values():
        side.end()
    found = {f"{name}{kind}": max(turn[name][at] for turn in turns) for name in sides
             for kind, at in {"clock": 0, "busy": 1}.items()}  # fmt: skip
    return found | {f"{name}median": statistics.median(turn[name][0] for turn in turns) for name in sides}


class Rounds(ArenaRun):
    """An arena whose slots are filled once, and its workers."""

    def __init__(self, rows: int) -> None:
        super().__init__(WORKERS, FREQUENCY, SMALL.spec, slots=SMALL.slots(rows, 8))
        self.log = _native.RoundLogThread(self.ring)
        self.log.start()
        self._rows = [rows] * WORKERS * FREQUENCY
        for at in range(2 * len(self._rows)):
            fill(view(self.arena.slot_address(at), self.slots.slot_bytes), self.slots, SMALL.batch(rows))

    def begin(self) -> None:
        """The next round's slots are full."""
        first = self.next_round * len(self._rows)
        self.ingest.fill_round(round=self.next_round, first_slot=first, rows=self._rows, closed=True)
        self.next_round += 1

    def work(self, index: int) -> None:
        worker, plan = self.crew[index]
        worker.run_closed_round(plan)


@bench(
    "workers", [Line(f"2 workers, {SMALL.name}", "workers", APART, 0.9)],
    once, "rows/s", {"rows": 256}, seconds=20.0, rows=4096,
)  # fmt: skip
def workers(run: Run) -> Sides:
    """Rounds of two workers, four steps each between two averagings, against two unconnected copies of the step. The
    least time of many rounds."""
    rounds, copies = Rounds(run.rows), [ours(SMALL, run.rows) for _ in range(WORKERS)]
    pool = run.stack.enter_context(ThreadPoolExecutor(WORKERS))

    def average() -> None:
        rounds.begin()
        list(pool.map(rounds.work, range(WORKERS)))

    def alone() -> None:
        list(pool.map(lambda index: [copies[index]() for _ in range(FREQUENCY)], range(WORKERS)))

    best = least_times({"workers": average, APART: alone}, run.seconds)
    assert rounds.arena.progress()["finished_round"] == rounds.next_round - 1
    return {name: WORKERS * FREQUENCY * run.rows / seconds for name, seconds in best.items()}


@bench(
    "average", [Line("10 M float32 of 4 workers", "average", "memcpy", 1.0)], best_times(turns=3), "GB/s", seconds=5.0
)  # fmt: skip
def average(run: Run) -> Sides:
    """The averaging of the vectors of four workers against memcpy of the same memory, one core. Bandwidth counts the
    bytes read and written: five vectors for the mean of four, two for a copy."""
    size = 4 * ELEMENTS
    layout = _native.StateLayout.make([_native.StateBlockSpec("x", "parameters", "learned", (ELEMENTS,))])
    vectors = [aligned(size) for _ in range(VECTORS)]
    for seed, vector in enumerate(vectors):
        vector.view(np.float32)[:] = np.random.default_rng(seed).standard_normal(ELEMENTS, np.float32)
    start, mean, copy = aligned(size), aligned(size), aligned(size)
    workers = [(vector.ctypes.data, 1.0 + at) for at, vector in enumerate(vectors)]

    def averaged() -> None:
        _native.average(layout, start.ctypes.data, workers, mean.ctypes.data)

    averaged()
    weights = np.arange(1, VECTORS + 1) / np.arange(1, VECTORS + 1).sum()
    heads = [vector.view(np.float32)[:1000].astype(float) for vector in vectors]
    expected = sum(weight * head for weight, head in zip(weights, heads, strict=True))
    assert np.array_equal(mean.view(np.float32)[:1000], expected.astype(np.float32))
    return {
        "average": (averaged, (VECTORS + 1) * size / 1e9),
        "memcpy": (lambda: ctypes.memmove(copy.ctypes.data, vectors[0].ctypes.data, size), 2 * size / 1e9),
    }
