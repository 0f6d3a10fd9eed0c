"""y = x / |x|, row by row."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.compute.builder import Builder, Gradient, Value
from streamtrain.compute.options import Option
from streamtrain.compute.shape import alike
from streamtrain.compute.spec import Ref
from streamtrain.compute.vertices import Examples

HELP = "rows of length 1 (L2)"
LEAST, MOST = 1, 1
OPTIONS: dict[str, Option] = {}
EXAMPLES: Examples = (([4], {}),)
shape = alike


def build(builder: Builder, name: str, inputs: Sequence[Value]) -> Value:
    (x,), rows = inputs, inputs[0].rows
    y, length = builder.buffer(f"{name}.output", *x.ref.shape), builder.buffer(f"{name}.length", rows)
    builder.call("unit_rows_forward", rows, x.columns, x.ref, y, length)

    def backward(dy: Ref) -> list[Gradient | None]:
        dx = builder.buffer(f"{name}.gradient", *x.ref.shape)
        builder.call("unit_rows_gradient", rows, x.columns, dy, y, length, dx)
        return [Gradient(dx) if x.learns else None]

    return builder.on_backward(backward, inputs, Value(y, learns=x.learns))
