"""A number for each of some values."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.columns.transforms.transform import Use
from tests.oracles.transforms import Cell


def meaning(use: Use, cells: Sequence[Cell], given: Sequence[bool]) -> list[Cell]:
    values, cell = use.given["values"], cells[0]
    if cell is None:
        return [None] * len(values)
    return [float(cell == (value if isinstance(cell, str) else float(value))) for value in values]
