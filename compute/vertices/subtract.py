"""y = a - b."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.compute.builder import Builder, Gradient, Value
from streamtrain.compute.options import Option
from streamtrain.compute.shape import alike
from streamtrain.compute.spec import Ref
from streamtrain.compute.vertices import Examples
from streamtrain.compute.vertices._reading import learns

HELP = "the difference of two values"
LEAST, MOST = 2, 2
SUMS = True
OPTIONS: dict[str, Option] = {}
EXAMPLES: Examples = (([3, 3], {}),)
shape = alike


def build(builder: Builder, name: str, inputs: Sequence[Value]) -> Value:
    a, b = inputs[0], inputs[1]
    y = builder.buffer(f"{name}.output", *a.ref.shape)
    builder.call("subtract_forward", y.elements, y, a.ref, b.ref)

    def backward(dy: Ref) -> list[Gradient | None]:
        if not b.learns:
            return [Gradient(dy), None]
        db = builder.buffer(f"{name}.gradient", *dy.shape)
        builder.call("affine", dy.elements, -1.0, 0.0, db, dy)
        return [Gradient(dy) if a.learns else None, Gradient(db)]

    return builder.on_backward(backward, inputs, Value(y, learns=learns(inputs)))
