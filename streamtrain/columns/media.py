"""Cells that are files of their own, decoded by a pool of threads: what ingest, predictors and programs ask."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_THREADS = 16
FEW = 4  # cells that are not worth another thread
SMALL = 4096  # bytes of a cell: smaller ones decode sooner than another thread has waited for the interpreter's lock

# Some cells, and a table of a row for each: each into its row; a byte for each: 1, or 0 where it cannot.
DecodePart = Callable[[Sequence[memoryview], NDArray[Any]], bytes]


@cache
def threads() -> int:
    """Returns how many threads decode at a time."""
    return min(MOST_THREADS, len(os.sched_getaffinity(0)))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads(), "media")


def decode(part: DecodePart, dtype: type, encoded: Sequence[memoryview], rows: memoryview) -> bytes:
    """Each cell into its row of `rows`, so many numbers of `dtype`; a byte for each: 1, or 0 where it cannot."""
    count = len(encoded)
    table: NDArray[Any] = np.frombuffer(rows, dtype).reshape(count, -1)
    parts = min(threads(), -(-count // FEW))
    if parts < 2 or sum(map(len, encoded)) < SMALL * count:
        return part(encoded, table)
    size = -(-count // (4 * parts))  # smaller than a thread's share: cells differ
    starts = range(0, count, size)
    return b"".join(_pool().map(lambda at: part(encoded[at : at + size], table[at : at + size]), starts))
