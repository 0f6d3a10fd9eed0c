"""The oracle of compute/ops/vocabulary.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops.vocabulary import HEAD, WIDTH, empty
from streamtrain.compute.spec import Array
from tests.oracles.ops import oracle
from tests.oracles.ops._batch import weights

_WORD = (1 << 64) - 1


def mix(x: int) -> int:
    """MurmurHash3's finalizer."""
    x &= _WORD
    x = ((x ^ (x >> 33)) * 0xFF51AFD7ED558CCD) & _WORD
    x = ((x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53) & _WORD
    return x ^ (x >> 33)


def holds(value: int, rounds: int, shift: int) -> bool:
    """Returns whether a value that was not known is among one in 2^shift."""
    return shift == 0 or mix(value + mix(rounds + 1)) >> (64 - shift) == 0


class Table:
    """A vocabulary in its words, which it writes to: head, entries (hash, count, newest_ms) from 1 on, index."""

    def __init__(self, words: Array) -> None:
        flat = words.reshape(-1)
        self.capacity = len(flat) // WIDTH - 1
        self.head = flat[:WIDTH]
        self.entry = flat[WIDTH : WIDTH + 6 * self.capacity].reshape(-1, 3)
        self.index = flat[WIDTH + 6 * self.capacity :].view(np.int32)

    def home(self, value: int) -> int:
        return (mix(value) >> 32) * len(self.index) >> 32

    def place(self, value: int) -> int:
        at = self.home(value)
        for _ in range(len(self.index) - 1):
            found = int(self.index[at])
            if found == 0 or int(self.entry[found - 1, 0]) == value:
                break
            at = (at + 1) % len(self.index)
        return at

    def find(self, value: int) -> int:
        """Returns the entry of a value, or 0 if it has none."""
        found = int(self.index[self.place(value)])
        return found if found and int(self.entry[found - 1, 0]) == value else 0

    def put(self, entry: int, value: int, count: int, newest_ms: int) -> None:
        self.index[self.place(value)] = entry
        self.entry[entry - 1] = value, count, newest_ms

    def take(self, entry: int) -> None:
        """Frees an entry; those behind it in the index close up."""
        size = len(self.index)
        hole = self.place(int(self.entry[entry - 1, 0]))
        at = (hole + 1) % size
        while self.index[at]:
            home = self.home(int(self.entry[self.index[at] - 1, 0]))
            if (at - home) % size >= (at - hole) % size:
                self.index[hole], hole = self.index[at], at
            at = (at + 1) % size
        self.index[hole] = 0
        self.entry[entry - 1] = 0


def add_value(share: Table, known: Table, value: int, newest_ms: int) -> None:
    """A row of the round."""
    if entry := share.find(value):
        share.entry[entry - 1, 1] += 1
        share.entry[entry - 1, 2] = max(int(share.entry[entry - 1, 2]), newest_ms)
        return
    rounds, used, shift = int(known.head[1]), HEAD.index("used"), HEAD.index("shift")

    def qualifies(each: int) -> bool:
        return known.find(each) > 0 or holds(each, rounds, int(share.head[shift]))

    if not qualifies(value):
        return
    while share.head[used] == len(share.entry) and share.head[shift] < 63:
        share.head[shift] += 1
        before = share.entry[: share.head[used]].tolist()
        share.head[used], share.entry[:], share.index[:] = 0, 0, 0
        for each in before:
            if qualifies(each[0]):
                share.head[used] += 1
                share.put(int(share.head[used]), *each)
    if share.head[used] < len(share.entry) and qualifies(value):
        share.head[used] += 1
        share.put(int(share.head[used]), value, 1, max(newest_ms, 0))


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    capacity, values = 1 + n % 40, rng.integers(-(1 << 62), 1 << 62, 100)
    base = empty(capacity, rounds=n % 3)
    for entry in range(1, 2 * capacity + 1, 1 + n % 2):
        Table(base).put(entry, int(values[entry]), 3, 5)
    return {
        "rows": n, "columns": 3, "column": 1, "t_columns": 2, "t_column": 1, "capacity": capacity, "words": base.size,
        "hashes": rng.choice(values, (n, 3)), "times": rng.integers(-1, 900, (n, 2)) if n % 3 else None,
        "weight": weights(rng, n), "base": base.reshape(-1), "share": np.zeros(base.size),
    }


@oracle(example)
def vocabulary_find(
    rows: int, columns: int, column: int, capacity: int, words: int, hashes: Array, base: Array, index: Array
) -> None:
    known = Table(base)
    found = [known.find(int(value)) for value in hashes[:, column]]
    index[:] = [entry if entry <= capacity else 0 for entry in found]


@oracle(example)
def vocabulary_add(
    rows: int, columns: int, column: int, t_columns: int, t_column: int, capacity: int, words: int, hashes: Array,
    times: Array | None, weight: Array, base: Array, share: Array,
) -> None:
    for row in np.flatnonzero(weight > 0):
        newest_ms = 0 if times is None else int(times[row, t_column])
        add_value(Table(share), Table(base), int(hashes[row, column]), newest_ms)
