"""One number less another, or the time from one moment to another."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.columns.transforms.transform import NUMBER, Use
from tests.oracles.transforms import Cell, finite

_UNIT_MS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def meaning(use: Use, cells: Sequence[Cell], given: Sequence[bool]) -> list[Cell]:
    first, second = cells
    if first is None or second is None:
        return [None]
    if use.sources[0].holds == NUMBER:
        return [finite(float(first) - float(second))]
    return [float(int(first) - int(second)) / _UNIT_MS[use.given["unit"]]]
