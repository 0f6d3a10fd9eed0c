"""What vertices ask of what they read, and how they fold many into one."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.compute.builder import Builder, Gradient, Mismatch, Value
from streamtrain.compute.spec import PerRow, Ref


def same_columns(inputs: Sequence[Value]) -> int:
    """Mismatch where they are not all as wide."""
    widths = [value.columns for value in inputs]
    if len(set(widths)) > 1:
        raise Mismatch(f"expected values of as many columns, got {widths}")
    return widths[0]


def same_rows(inputs: Sequence[Value]) -> PerRow:
    """Mismatch where some have several rows for each of the batch's and others as many do not."""
    times = [value.rows.times for value in inputs]
    if len(set(times)) > 1:
        raise Mismatch(f"expected values with as many rows stacked, got {times}")
    return inputs[0].rows


def copy(builder: Builder, name: str, given: Ref) -> Ref:
    """In a buffer of its own."""
    to = builder.buffer(name, *given.shape)
    builder.call("affine", given.elements, 1.0, 0.0, to, given)
    return to


def to_each(builder: Builder, name: str, inputs: Sequence[Value], dy: Ref) -> list[Gradient | None]:
    """The same gradient to all that learn, a copy to each but the first of them."""
    found: list[Gradient | None] = []
    for value in inputs:
        taken = any(each is not None for each in found)
        gradient = copy(builder, f"{name}.gradient", dy) if value.learns and taken else dy
        found.append(Gradient(gradient) if value.learns else None)
    return found


def learns(inputs: Sequence[Value]) -> bool:
    return any(value.learns for value in inputs)
