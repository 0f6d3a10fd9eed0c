"""Cells as their columns see them, slowly: what the native halves are tested against."""

from __future__ import annotations

import numpy as np

from streamtrain.columns.kinds.kind import LARGEST, Wrong

Cell = bool | int | float | str


class Moment(int):
    """A time since 1970 in a unit that the record tells: `unit` is milliseconds of one, as a fraction."""

    unit: tuple[int, int]

    def __new__(cls, count: int, unit: tuple[int, int]) -> Moment:
        cell = super().__new__(cls, count)
        cell.unit = unit
        return cell


def float32(value: Cell) -> np.float32:
    """A number whose square fits float32; text is none."""
    if isinstance(value, str) or not abs(value) < 1e38:  # as float() takes it
        raise Wrong
    rounded = np.float32(value)
    if not abs(rounded) <= LARGEST:
        raise Wrong
    return rounded


def whole(value: float | int) -> int | None:
    """The integer a number is: integers, and floats below 2^53 without a fraction."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else None
    return int(value)


def as_text(value: Cell) -> str:
    """The text a category or a class is."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    found = whole(value)
    if found is None:
        raise Wrong
    return str(found)
