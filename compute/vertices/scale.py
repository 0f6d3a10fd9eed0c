"""y = by x."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.compute.builder import Builder, Gradient, Value
from streamtrain.compute.options import Number, Option
from streamtrain.compute.shape import alike
from streamtrain.compute.spec import Ref
from streamtrain.compute.vertices import Examples

HELP = "a value by a factor"
LEAST, MOST = 1, 1
SUMS = True
OPTIONS: dict[str, Option] = {"by": Number(least=-1e30, most=1e30, help="the factor")}
EXAMPLES: Examples = (([3], {"by": -2.5}),)
shape = alike


def build(builder: Builder, name: str, inputs: Sequence[Value], by: float) -> Value:
    (x,) = inputs
    y = builder.buffer(f"{name}.output", *x.ref.shape)
    builder.call("affine", y.elements, by, 0.0, y, x.ref)

    def backward(dy: Ref) -> list[Gradient | None]:
        builder.call("affine", dy.elements, by, 0.0, dy, dy)
        return [Gradient(dy) if x.learns else None]

    return builder.on_backward(backward, inputs, Value(y, learns=x.learns))
