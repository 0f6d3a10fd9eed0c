"""The shape of a value of a graph, and the rules by which a vertex's follows from those of what it reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Mismatch(ValueError):
    """An error for what cannot be put together. It gives what was expected, what it is, and what to do."""


class Shape(NamedTuple):
    """[rows, columns]: `times` rows for each of the batch's."""

    times: int
    columns: int


def alike(inputs: Sequence[Shape], **options: Any) -> Shape:
    """Returns the shape of one value, or of several of the same shape. Mismatch where they differ."""
    if len({each.columns for each in inputs}) > 1:
        widths = [each.columns for each in inputs]
        raise Mismatch(f"expected values of as many columns, got {widths}; a dense layer makes as many as its size")
    return Shape(same_times(inputs), inputs[0].columns)


def one_column(inputs: Sequence[Shape], **options: Any) -> Shape:
    """A number for each row of values of one shape."""
    return alike(inputs)._replace(columns=1)


def same_times(inputs: Sequence[Shape]) -> int:
    """Mismatch where some have several rows for each of the batch's and others as many do not."""
    times = [each.times for each in inputs]
    if len(set(times)) > 1:
        raise Mismatch(f"expected values with as many rows stacked, got {times}; unstack what is stacked")
    return times[0]
