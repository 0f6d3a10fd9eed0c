"""Rounds of two workers, four steps of 28-64-64-1 each between two averagings, against two unconnected copies of the
step, two threads each; batches lie in the ring. The least time of many rounds, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402
from bench_step import FEATURES, NETWORKS, SPEC, batch, stepping  # noqa: E402

from streamtrain import _native  # noqa: E402
from streamtrain.compute.model import Model  # noqa: E402
from streamtrain.compute.state import view  # noqa: E402

SMOKE = ["--seconds", "1", "--rows", "256"]
BAR = 0.9
WORKERS, FREQUENCY = 2, 4


class Rounds:
    """An arena whose slots are filled once, and its workers."""

    def __init__(self, model: Model, rows: int) -> None:
        blocks = [("numbers", "f32", FEATURES), ("label", "f32", 1), ("weight", "f32", 1)]
        slots, self.rows, self.round = _native.SlotLayout.make(rows, 8, blocks), rows, 0
        count = 2 * WORKERS * FREQUENCY
        self.arena = _native.Arena.create(workers=WORKERS, averaging_frequency=FREQUENCY, slot_count=count,
                                          slot_layout=slots, state_layout=model.layout)  # fmt: skip
        start = view(self.arena.mean_address(0), model.layout.published(WORKERS).state_bytes)
        model.layout.begin_lineage(model.initial_state(7), WORKERS, start)
        self.ring = _native.CoordinatorEnd(self.arena)
        self.ring.begin(round=-1, learning_rate=1e-3)
        self.log = _native.RoundLogThread(self.ring)
        self.log.start()
        self.ring.start()
        self.ingest = _native.IngestEnd(self.arena)
        x, y = batch(rows)
        for at in range(count):
            slot = view(self.arena.slot_address(at), slots.slot_bytes)
            for block, content in zip(slots.blocks, (x, y, np.ones(rows, np.float32)), strict=True):
                slot[block.offset : block.offset + content.nbytes].view(np.float32)[:] = content.reshape(-1)
        workers = [_native.Worker(self.arena, index) for index in range(WORKERS)]
        plans = [
            model.compile("cpu", slots, each.state_address, each.base_address, each.share_address) for each in workers
        ]
        self.crew = list(zip(workers, plans, strict=True))

    def begin(self) -> None:
        """The next round's slots are full."""
        steps = WORKERS * FREQUENCY
        self.ingest.fill_round(round=self.round, first_slot=self.round * steps, rows=[self.rows] * steps, closed=True)
        self.round += 1

    def work(self, index: int) -> None:
        worker, plan = self.crew[index]
        worker.run_closed_round(plan)


class Team:
    """Threads that each do their part when told to."""

    def __init__(self, part: Callable[[int], Any]) -> None:
        self._part, self._gate, self._ended = part, threading.Barrier(WORKERS + 1), False
        self._threads = [threading.Thread(target=self._run, args=(index,)) for index in range(WORKERS)]
        for thread in self._threads:
            thread.start()

    def _run(self, index: int) -> None:
        while self._gate.wait() >= 0 and not self._ended:
            self._part(index)
            self._gate.wait()

    def seconds(self) -> float:
        start = time.perf_counter()
        self._gate.wait()
        self._gate.wait()
        return time.perf_counter() - start

    def end(self) -> None:
        self._ended = True
        self._gate.wait()
        for thread in self._threads:
            thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rows", type=int, default=4096)
    options = parser.parse_args()
    name, sizes = next(iter(NETWORKS.items()))
    spec = {**SPEC, "layers": [{"dense": size, "activation": "relu"} for size in sizes]}
    rounds = Rounds(Model(spec), options.rows)
    copies = [stepping(Model(spec), options.rows, options.rows) for _ in range(WORKERS)]
    ours, rival = Team(rounds.work), Team(lambda index: [copies[index]() for _ in range(FREQUENCY)])
    best, end = [float("inf")] * 2, time.perf_counter() + options.seconds
    while time.perf_counter() < end or max(best) == float("inf"):
        rounds.begin()
        best = [min(best[0], ours.seconds()), min(best[1], rival.seconds())]
    ours.end()
    rival.end()
    assert rounds.arena.progress()["finished_round"] == rounds.round - 1
    mine, other = (WORKERS * FREQUENCY * options.rows / seconds for seconds in best)
    print(json.dumps({
        "bench": f"{WORKERS} workers {name} {options.rows} rows {_native.select_isa('auto')}", "ours": round(mine),
        "rival": round(other), "ratio": round(mine / other, 2), "bar": BAR, "unit": "rows/s, unconnected copies",
    }))  # fmt: skip


if __name__ == "__main__":
    main()
