"""y = x + by."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.compute.builder import Builder, Gradient, Value
from streamtrain.compute.options import Number, Option
from streamtrain.compute.shape import alike
from streamtrain.compute.spec import Ref
from streamtrain.compute.vertices import Examples

HELP = "a value with a number on top"
LEAST, MOST = 1, 1
OPTIONS: dict[str, Option] = {"by": Number(least=-1e30, most=1e30, help="the number to add")}
EXAMPLES: Examples = (([3], {"by": 0.5}),)
shape = alike


def build(builder: Builder, name: str, inputs: Sequence[Value], by: float) -> Value:
    (x,) = inputs
    y = builder.buffer(f"{name}.output", *x.ref.shape)
    builder.call("affine", y.elements, 1.0, by, y, x.ref)

    def backward(dy: Ref) -> list[Gradient | None]:
        return [Gradient(dy) if x.learns else None]

    return builder.on_backward(backward, inputs, Value(y, learns=x.learns))
