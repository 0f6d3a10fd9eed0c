"""Sizes of a job's rounds and ring. They follow from its settings and the sizes of its model and rows alone, so that
every start of the job has the same ones; the round settings record them.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np

from streamtrain.job.sections import Train

MIN_FREQUENCY, MAX_FREQUENCY = 4, 64  # of averagings, where the model's size decides
MAX_OF_MANY = 4096  # the same where there are many hosts
MIN_RING_SLOTS = 24
RING_BYTES = 256_000_000  # that the ring's rounds may take where they are longer than the shortest
SLOW_ROWS_PER_S = 10_000  # below it a job is warned
_MB = 1_000_000


class RoundSizes(NamedTuple):
    """The sizes of one job, with the numbers that "auto" means for it."""

    workers: int
    averaging_frequency: int  # steps per worker between two averagings
    min_batch_rows: int
    prefetch_buffer: int  # slots in the ring

    @property
    def slots(self) -> int:
        """Returns the slots of a full round."""
        return self.workers * self.averaging_frequency

    def updates(self, rows: int, train: Train) -> int:
        """Returns the updates of the parameters in a lineage's first `rows` rows."""
        count, at, growth = 0.0, 0, train.batch_growth
        size = train.update_rows if growth is None else self.min_batch_rows
        while at < rows:
            end = rows if growth is None or size >= train.update_rows else min(rows, (size + 1) * growth)
            count += (end - at) / size
            at, size = end, size + 1
        return math.ceil(count / self.workers)


def copied_bytes_per_s() -> float:
    """Measures how fast this machine copies memory that no cache holds, in some 20 ms."""
    source, target = np.ones(2**25, np.uint8), np.empty(2**25, np.uint8)
    target[:] = source  # the pages are there
    began_s = time.perf_counter()
    target[:] = source
    return source.nbytes / (time.perf_counter() - began_s)


def largest_rates(train: Train, rounds: RoundSizes, state_bytes: int) -> tuple[float, float]:
    """Returns the rows/s that averaging allows at most: with the smallest batches, and with full-grown ones.

    A worker copies the state when a round begins, and the mean is a pass over every worker's. A single worker has the
    mean already. What steps cost comes on top.
    """
    passes = 1 if train.workers == 1 else 2 * train.workers + 1
    rounds_per_s = copied_bytes_per_s() / (passes * state_bytes)
    least = train.update_rows if train.batch_growth is None else rounds.min_batch_rows
    return rounds.slots * least * rounds_per_s, rounds.slots * train.update_rows * rounds_per_s


def round_sizes(train: Train, state_bytes: int, row_bytes: float) -> RoundSizes:
    """Returns the sizes for a model of `state_bytes`, with `row_bytes` for a row of a slot.

    A round copies and averages the whole state, however few rows it has: the larger the state, the more rows a round
    gets, in more and larger batches. Where there are many hosts a round lasts until a snapshot is due: it is as long as
    the ring allows.
    """
    megabytes, frequency = state_bytes // _MB, train.averaging_frequency
    rounds, most = (3, min(megabytes, MAX_FREQUENCY)) if train.hosts == "one" else (2, MAX_OF_MANY)
    if frequency is None:
        fitting = int(RING_BYTES / (rounds * train.workers * train.update_rows * row_bytes))
        frequency = max(MIN_FREQUENCY, min(most, fitting))
        if train.prefetch_buffer is not None:
            frequency = max(1, min(frequency, train.prefetch_buffer // (2 * train.workers)))
    rows = max(1, min(megabytes, train.batch_rows)) if train.min_batch_rows is None else train.min_batch_rows
    ring = train.prefetch_buffer or max(MIN_RING_SLOTS, rounds * train.workers * frequency)
    return RoundSizes(train.workers, frequency, rows, ring)
