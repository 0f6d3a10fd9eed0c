"""The shared parts of vertices that read any values."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.compute.builder import Builder, Gradient, Value
from streamtrain.compute.spec import Ref


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
