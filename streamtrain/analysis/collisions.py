"""Frequent values of a hashed column that share a bucket, so that the model cannot tell them apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamtrain.analysis.sketches import Array

FREQUENT = 0.01  # share of the rows from which on a value is frequent
LEAST_ROWS = 5  # below it a value of a small sample is not frequent
KEPT = 4_096  # counters: a count is too low by at most 1/4,096 of the rows


class Frequent:
    """Counts the frequent values of a column (Misra, Gries 1982; merged as Agarwal et al. 2013)."""

    def __init__(self) -> None:
        self._values, self._counts = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def add(self, values: Array, counts: Array | None = None) -> None:
        """Takes values [rows] int64; `counts` says how often each comes, once without."""
        found, index = np.unique(np.concatenate([self._values, values]), return_inverse=True)
        ones = np.ones(len(values), np.int64) if counts is None else counts
        sums = np.bincount(index, np.concatenate([self._counts, ones]), len(found)).astype(np.int64)
        if len(found) > KEPT:
            sums -= np.partition(sums, -KEPT - 1)[-KEPT - 1]
        self._values, self._counts = found[sums > 0], sums[sums > 0]

    def frequent(self, rows: int) -> tuple[Array, Array]:
        """Returns the values in at least FREQUENT of so many rows, and their counts."""
        often = self._counts >= max(LEAST_ROWS, FREQUENT * rows)
        return self._values[often], self._counts[often]


class Collisions(NamedTuple):
    """The frequent values of a column that share a bucket with another one: how many, and their share of the rows, or
    of the entries of lists, texts and pairs."""

    values: int
    frequent: int
    share: float
    buckets: int
    of_what: str = "rows"
    by_bits: bool = False  # Vowpal Wabbit's hash, whose bits give the buckets

    @classmethod
    def of(cls, hashes: Frequent, rows: int, buckets: int, of_what: str = "rows", by_bits: bool = False) -> Collisions:
        """`rows`: how many there are of what `of_what` names."""
        values, counts = hashes.frequent(rows)
        _, index, sizes = np.unique(
            values.astype(np.uint64) % np.uint64(buckets), return_inverse=True, return_counts=True
        )
        shared = sizes[index] > 1
        share = float(counts[shared].sum()) / rows if rows else 0.0
        return cls(int(shared.sum()), len(values), share, buckets, of_what, by_bits)

    def warning(self, column: str) -> str:
        """Returns what the model cannot tell apart, and the remedy."""
        remedy = "a vocabulary, or " if self.of_what == "rows" else "more bits, and " if self.by_bits else ""
        return (
            f"{column}: {self.values} of {self.frequent} frequent values share a bucket with another one, "
            f"{self.share:.0%} of the {self.of_what}; give it {remedy}more than {self.buckets:,} buckets"
        )


def warnings(document: dict[str, Any]) -> list[str]:
    """The warnings of a summary's document, a column each."""
    found = {name: each["collisions"] for name, each in document["columns"].items() if "collisions" in each}
    return [Collisions(**each).warning(name) for name, each in found.items() if each["values"]]
