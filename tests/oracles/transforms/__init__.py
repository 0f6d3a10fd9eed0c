"""The meaning of transforms in plain Python: a file for each of columns/transforms, by the same name, with meaning().

meaning(use, cells, given) returns the cells made of one row's; `given`: whether the record gave each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module

from streamtrain.columns.transforms.transform import Use

Cell = float | str | int | None  # an int is a time or the hash of a value; None: it is missing
Meaning = Callable[[Use, Sequence[Cell], Sequence[bool]], list[Cell]]


def of(name: str) -> Meaning:
    """Returns the meaning of a transform."""
    found: Meaning = import_module(f"{__name__}.{name}").meaning
    return found


def of_number(formula: Callable[[Use, float], float | None]) -> Meaning:
    """Returns the meaning of a transform that makes a number of one number."""

    def meaning(use: Use, cells: Sequence[Cell], given: Sequence[bool]) -> list[Cell]:
        return [None if cells[0] is None else finite(formula(use, float(cells[0])))]

    return meaning


def finite(value: float | None) -> float | None:
    """Returns a finite value as it is. Any other becomes None: it is missing."""
    return value if value is not None and math.isfinite(value) else None
