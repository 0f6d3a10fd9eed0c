"""Figures of the blocks of a snapshot: how large, how spread, what of a table was touched, how far from another's.

NumPy alone. Of a block with more than MOST_ELEMENTS evenly spaced rows are looked at, the same in every snapshot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from streamtrain.compute.spec import Array

MOST_ELEMENTS = 1 << 18  # of a block that are looked at
BINS = 40
TABLE = ".embedding"  # ends the name of what is looked up by rows
STEPS = "optimizer.steps"  # updates of a worker, since the lineage began
SPREAD = (0.05, 0.5, 0.95)
Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class BlockFigures:
    """The figures of a parameter block. `norm` is an estimate if rows are `sampled`; `counts` lie between `edges`."""

    name: str
    shape: tuple[int, ...]
    sampled: int  # rows looked at; 0: all
    norm: float
    magnitude: float  # mean of the absolute values
    mean: float
    deviation: float
    least: float
    largest: float
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    optimizer: Mapping[str, float]  # mean magnitude of what the optimizer keeps, by its name
    touched: float | None = None  # of a table: share of rows that the optimizer has seen a gradient of
    row_norms: tuple[float, ...] = ()  # of a table: quantiles of SPREAD


@dataclass(frozen=True)
class Change:
    """From a block of one snapshot to that of a later one, `updates` of a worker in between."""

    magnitude: float  # mean of the absolute differences to the mean magnitude before
    updates: int
    changed: float  # share of rows that differ

    @property
    def most(self) -> float:
        """Returns the ratio of one update to the parameters, if updates are independent of each other."""
        return self.magnitude / math.sqrt(max(1, self.updates))

    @property
    def least(self) -> float:
        """If they all go one way."""
        return self.magnitude / max(1, self.updates)


def sampled(arrays: Arrays) -> dict[str, Array]:
    """Copies of what is looked at of each block."""
    return {name: np.array(_rows(array)) for name, array in arrays.items()}


def _rows(array: Array) -> Array:
    """[rows, …], or all of it; evenly spaced rows of what is larger than MOST_ELEMENTS."""
    if array.size <= MOST_ELEMENTS or array.ndim == 0:
        return array
    width = array.size // len(array)
    flat = array if width <= MOST_ELEMENTS else array.reshape(-1)
    row_count = max(1, MOST_ELEMENTS // max(1, flat.size // len(flat)))
    return flat[:: -(-len(flat) // row_count)]


def figures(shapes: Mapping[str, tuple[int, ...]], parameters: Arrays, optimizer: Arrays) -> dict[str, BlockFigures]:
    """Returns the figures of each block by name, from a snapshot's sampled() arrays. `shapes` are of whole blocks."""
    own: dict[str, dict[str, Array]] = {name: {} for name in parameters}
    for block, kept in optimizer.items():
        name = max((each for each in own if block.endswith(f".{each}")), key=len, default=None)
        if name is not None:
            own[name][block.removesuffix(f".{name}")] = kept
    return {name: _figures(name, shapes[name], array, own[name]) for name, array in parameters.items() if array.size}


def _figures(name: str, shape: tuple[int, ...], array: Array, own: Arrays) -> BlockFigures:
    values = array.astype(np.float64).reshape(-1)
    whole = math.prod(shape)
    sizes = np.abs(values)
    counts, edges = np.histogram(values, BINS)
    is_table = name.endswith(TABLE) and array.ndim == 2
    norms = np.sqrt((array.astype(np.float64) ** 2).sum(1)) if is_table else np.zeros(0)
    return BlockFigures(
        name=name,
        shape=shape,
        sampled=len(array) if array.size < whole else 0,
        norm=float(np.sqrt((values**2).mean() * whole)),
        magnitude=float(sizes.mean()),
        mean=float(values.mean()),
        deviation=float(values.std()),
        least=float(values.min()),
        largest=float(values.max()),
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
        optimizer={kind: float(np.abs(kept).mean(dtype=np.float64)) for kind, kept in own.items() if kept.size},
        touched=_touched(array, list(own.values())) if is_table else None,
        row_norms=tuple(np.quantile(norms, SPREAD).tolist()) if is_table else (),
    )


def _touched(table: Array, kept: list[Array]) -> float | None:
    """Rows for which the optimizer keeps something that is not 0; None where it keeps nothing a row."""
    rows = [each.reshape(-1, len(table), each.shape[-1]) for each in kept
            if each.ndim >= 2 and each.shape[-2] == len(table)]  # fmt: skip
    if not rows:
        return None
    seen = np.any([(each != 0).any(axis=(0, 2)) for each in rows], axis=0)
    return float(seen.mean())


def changes(before: Arrays, after: Arrays, updates: int) -> dict[str, Change]:
    """Returns the change of each block that both snapshots have, from their sampled() arrays."""
    found = {}
    for name, old in before.items():
        new = after.get(name)
        if new is None or new.shape != old.shape or not old.size:
            continue
        apart = np.abs(new.astype(np.float64) - old)
        size = float(np.abs(old).mean(dtype=np.float64))
        rows = apart.reshape(len(old), -1).any(axis=1)
        found[name] = Change(float(apart.mean()) / size if size > 0 else math.inf, updates, float(rows.mean()))
    return found
