"""Figures of the snapshots of one job that have been looked into, and how far each is from the one before. Bounded."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise

from streamtrain.ui.block_figures import Arrays, BlockFigures, Change, changes

MOST_VERSIONS = 400
BYTES = 256 * 2**20  # of values that are kept, all snapshots together


@dataclass(frozen=True)
class Examined:
    """One snapshot. `updates`: of a worker, since its lineage began."""

    version: int
    digest: bytes
    lineage: str
    created_ms: int
    updates: int
    blocks: Mapping[str, BlockFigures]


class Snapshots:
    """By version; any thread may read. Values are what sampled() gave, and are kept of as many as BYTES holds."""

    def __init__(self, most: int = MOST_VERSIONS, most_bytes: int = BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._lock = threading.Lock()
        self._examined: dict[int, Examined] = {}
        self._values: dict[int, Arrays] = {}
        self._changes: dict[tuple[int, int], Mapping[str, Change]] = {}

    def of(self, version: int) -> Examined | None:
        return self._examined.get(version)

    def has_values(self, version: int) -> bool:
        return version in self._values

    @property
    def all(self) -> list[Examined]:
        """By version."""
        with self._lock:
            return [self._examined[version] for version in sorted(self._examined)]

    def change(self, before: int, after: int) -> Mapping[str, Change]:
        """By block; nothing where one's values are not at hand, or they are of two lineages."""
        with self._lock:
            if (before, after) not in self._changes:
                self._compare(before, after)
            return self._changes.get((before, after), {})

    def add(
        self, found: Examined, values: Arrays, keep_values: Collection[int] = (), keep_figures: Collection[int] = ()
    ) -> None:
        """`keep_values`: versions whose values stay; `keep_figures`: less than can be kept, whose figures stay."""
        with self._lock:
            known = self._examined.get(found.version)
            if known is not None and known.digest != found.digest:  # a job of that name begun anew
                for kept in (self._examined, self._values, self._changes):
                    kept.clear()
            self._examined[found.version], self._values[found.version] = found, values
            in_order = sorted(self._examined)
            at = in_order.index(found.version)
            for before, after in pairwise(in_order[max(0, at - 1) : at + 2]):
                self._compare(before, after)
            staying = {found.version, *keep_values}
            surplus = max(0, len(in_order) - self._most)
            self._drop([version for version in in_order if version not in {*staying, *keep_figures}][:surplus], staying)

    def _drop(self, versions: list[int], staying: Collection[int]) -> None:
        for version in versions:
            del self._examined[version]
            self._values.pop(version, None)
        self._changes = {pair: each for pair, each in self._changes.items() if set(pair) <= self._examined.keys()}
        sizes = {version: sum(each.nbytes for each in own.values()) for version, own in self._values.items()}
        for version in sorted(sizes.keys() - staying):
            if sum(sizes.values()) > self._most_bytes:
                del self._values[version], sizes[version]

    def _compare(self, before: int, after: int) -> None:
        one, other = self._examined.get(before), self._examined.get(after)
        if one is None or other is None or one.lineage != other.lineage:
            return
        if before in self._values and after in self._values:
            updates = other.updates - one.updates
            self._changes[before, after] = changes(self._values[before], self._values[after], updates)
