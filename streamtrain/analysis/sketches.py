"""Sketches of a column's values: how many differ, and how they are distributed. Their size is bounded for any input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
REGISTER_BITS = 12
DISTINCT_ERROR = 1.04 / math.sqrt(1 << REGISTER_BITS)  # one standard deviation, relative
EXACT = 1_000  # up to so many values that differ are counted
QUANTILE_ERROR = 0.01  # relative, of a value
_GAMMA = math.log((1 + QUANTILE_ERROR) / (1 - QUANTILE_ERROR))
_ZERO = 100_000  # of the keys of bins: above it of values above 0, below it below


def mixed(values: Array) -> Array:
    """uint64 of numbers, well mixed (Steele, Lea, Flood 2014: SplitMix64); -0 is 0."""
    wide = np.ascontiguousarray(values, np.float64) + 0.0 if values.dtype.kind == "f" else values.astype(np.int64)
    bits: Array = wide.view(np.uint64)
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Array = bits ^ (bits >> np.uint64(31))
    return found


class Distinct:
    """Counts distinct values: exactly up to EXACT, then with HyperLogLog's estimate (Flajolet et al. 2007)."""

    def __init__(self) -> None:
        self._exact: Array | None = np.zeros(0, np.uint64)
        self._registers = np.zeros(1 << REGISTER_BITS, np.uint8)

    def add(self, values: Array) -> None:
        hashes = np.unique(mixed(values))
        if self._exact is not None:
            together = np.union1d(self._exact, hashes)
            self._exact = together if len(together) <= EXACT else None
        rest_bits = 64 - REGISTER_BITS
        rest = hashes & np.uint64((1 << rest_bits) - 1)
        rank = rest_bits + 1 - np.frexp(rest.astype(np.float64))[1]  # zeros it begins with, and one
        np.maximum.at(self._registers, (hashes >> np.uint64(rest_bits)).astype(np.int64), rank.astype(np.uint8))

    @property
    def is_exact(self) -> bool:
        return self._exact is not None

    @property
    def count(self) -> int:
        if self._exact is not None:
            return len(self._exact)
        registers = len(self._registers)
        found = 0.7213 / (1 + 1.079 / registers) * registers**2 / np.exp2(-self._registers.astype(np.float64)).sum()
        zeros = int((self._registers == 0).sum())
        if found <= 2.5 * registers and zeros:
            found = registers * math.log(registers / zeros)
        return round(float(found))


class Spread:
    """Count, mean, deviation, least and largest; quantiles to QUANTILE_ERROR (Masson, Rim, Lee 2019: DDSketch)."""

    def __init__(self) -> None:
        self.count, self.mean, self._squares = 0, 0.0, 0.0
        self.least, self.largest = math.inf, -math.inf
        self._bins: dict[int, int] = {}

    def add(self, values: Array) -> None:
        if not len(values):
            return
        wide = values.astype(np.float64)
        count, mean = len(wide), float(wide.mean())
        apart, both = mean - self.mean, self.count + count
        self._squares += float(((wide - mean) ** 2).sum()) + apart**2 * self.count * count / both
        self.mean += apart * count / both
        self.count = both
        self.least, self.largest = min(self.least, float(wide.min())), max(self.largest, float(wide.max()))
        size = np.abs(wide)
        with np.errstate(divide="ignore"):
            key = np.where(size > 0, np.ceil(np.log(size) / _GAMMA) + _ZERO, 0)
        keys, counts = np.unique((np.sign(wide) * key).astype(np.int64), return_counts=True)
        for each, number in zip(keys.tolist(), counts.tolist(), strict=True):
            self._bins[each] = self._bins.get(each, 0) + number

    @property
    def deviation(self) -> float:
        return math.sqrt(self._squares / self.count) if self.count else 0.0

    def quantiles(self, shares: list[float]) -> list[float]:
        """Returns the values at these shares, from 0 to 1; none without values."""
        values, counts = self.bins()
        ends = np.cumsum(counts)
        at = np.searchsorted(ends, np.array(shares) * (self.count - 1), side="right")
        return [float(values[min(place, len(values) - 1)]) for place in at] if self.count else []

    def bins(self) -> tuple[Array, Array]:
        """Values in ascending order, and how many lie at each, to that error."""
        keys = np.array(sorted(self._bins), np.int64)
        size = np.where(keys == 0, 0, 2 * np.exp((np.abs(keys) - _ZERO) * _GAMMA) / (math.exp(_GAMMA) + 1))
        values = np.clip(np.sign(keys) * size, self.least, self.largest) if self.count else size
        return values, np.array([self._bins[key] for key in keys.tolist()], np.int64)

    def histogram(self, edges: Array) -> Array:
        """Returns the counts below the first edge, from each edge to the next, and from the last edge on."""
        values, counts = self.bins()
        return np.bincount(np.searchsorted(edges, values, side="right"), counts, len(edges) + 1).astype(np.int64)


def stability_index(expected: Array, got: Array) -> float:
    """The population stability index of two histograms of the same bins; half a row stands in for none."""
    one, other = (np.maximum(each, 0.5) / max(float(each.sum()), 0.5) for each in (expected, got))
    return float(((other - one) * np.log(other / one)).sum())
