"""Threads of one worker on one training step, arrays in memory: against as many unconnected copies of the step with one
thread each, in processes of their own at the same time. The sides take turns; the median of the turns' ratios and the
best turn of each side, by the clock and by processor time, which a loaded machine disturbs less.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench_networks import Network, ours
from workbench import figure, spawn

SMOKE = ["--seconds", "1", "--turns", "2"]
FIGURES = 2
NETWORKS = (
    Network("28-64-64-1", {4096: 0.9}, (64, 64), numbers=28),
    Network("28-512-512-256-1", {4096: 0.9}, (512, 512, 256), numbers=28),
)


def stepping(network: Network, rows: int, threads: int, pipe: Any) -> None:
    """Told so many seconds, answers with the rows a second of the clock, and of processor time."""
    step = ours(network, rows, threads)
    step()
    pipe.send(True)
    while seconds := pipe.recv():
        begun, begun_busy, steps = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() < begun + seconds:
            step()
            steps += 1
        done = steps * rows
        pipe.send((done / (time.perf_counter() - begun), done / (time.process_time() - begun_busy)))


class Side:
    """Processes that step at the same time."""

    def __init__(self, network: Network, rows: int, threads: int, copies: int) -> None:
        self._pipes, self._processes = [], []
        for _ in range(copies):
            mine, theirs = spawn.Pipe()
            process = spawn.Process(target=stepping, args=(network, rows, threads, theirs), daemon=True)
            process.start()
            self._pipes.append(mine)
            self._processes.append(process)
        assert all(pipe.recv() for pipe in self._pipes)

    def rates(self, seconds: float) -> tuple[float, float]:
        """Of all together by the clock; of one by processor time."""
        for pipe in self._pipes:
            pipe.send(seconds)
        found = [pipe.recv() for pipe in self._pipes]
        return sum(rate for rate, _ in found), statistics.mean(rate for _, rate in found)

    def end(self) -> None:
        for pipe in self._pipes:
            pipe.send(0)
        for process in self._processes:
            process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--rows", type=int, nargs="*", default=[4096])
    parser.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))))
    given = parser.parse_args()
    for network in NETWORKS:
        for rows in given.rows:
            sides = Side(network, rows, given.threads, 1), Side(network, rows, 1, given.threads)
            each_s = given.seconds / (len(NETWORKS) * len(given.rows) * 2 * given.turns)
            turns = [[side.rates(each_s) for side in sides] for _ in range(given.turns)]
            for side in sides:
                side.end()
            (mine, mine_busy), (apart, apart_busy) = (
                [max(turn[at][kind] for turn in turns) for kind in (0, 1)] for at in (0, 1)
            )
            figure(
                f"{given.threads} threads on one step, {network.name} {rows} rows", round(mine), round(apart),
                network.bars.get(rows), "rows/s, unconnected copies, best turns",
                median=round(statistics.median(turn[0][0] / turn[1][0] for turn in turns), 2),
                processor_time=round(mine_busy / apart_busy, 2),
            )  # fmt: skip


if __name__ == "__main__":
    main()
