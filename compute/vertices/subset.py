"""Columns of a value."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain import _native
from streamtrain.compute.builder import Builder, Gradient, Value
from streamtrain.compute.options import Option, Whole
from streamtrain.compute.shape import Mismatch, Shape
from streamtrain.compute.spec import Ref
from streamtrain.compute.vertices import Examples

HELP = "columns of a value, from `first` to the one before `end`"
LEAST, MOST = 1, 1
OPTIONS: dict[str, Option] = {
    "first": Whole(most=_native.MAX_COLUMNS, default=0, help="the first of them, counted from 0"),
    "end": Whole(least=1, most=_native.MAX_COLUMNS, help="the one behind the last"),
}
EXAMPLES: Examples = (([5], {"first": 1, "end": 4}),)


def shape(inputs: Sequence[Shape], first: int, end: int) -> Shape:
    (x,) = inputs
    if not first < end <= x.columns:
        raise Mismatch(f"expected columns from 0 to {x.columns}, got {first} to {end}; set `first` and `end` so")
    return x._replace(columns=end - first)


def build(builder: Builder, name: str, inputs: Sequence[Value], first: int, end: int) -> Value:
    (x,), rows, count = inputs, inputs[0].rows, end - first
    y = builder.buffer(f"{name}.output", rows, count)
    builder.call("copy_columns", rows, count, x.columns, first, count, 0, x.ref, y)

    def backward(dy: Ref) -> list[Gradient | None]:
        return [Gradient(dy, first=first) if x.learns else None]

    return builder.on_backward(backward, inputs, Value(y, learns=x.learns))
