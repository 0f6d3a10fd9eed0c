"""y = function(x), element by element."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.compute import activations
from streamtrain.compute.builder import Builder, Gradient, Value
from streamtrain.compute.options import Option, Word
from streamtrain.compute.shape import alike
from streamtrain.compute.spec import Ref
from streamtrain.compute.vertices import Examples

HELP = "an activation of each element"
LEAST, MOST = 1, 1
OPTIONS: dict[str, Option] = {"function": Word(of=activations.names, help="name of the activation")}
EXAMPLES: Examples = (([3], {"function": "gelu"}),)
shape = alike


def build(builder: Builder, name: str, inputs: Sequence[Value], function: str) -> Value:
    (x,) = inputs
    y = builder.buffer(f"{name}.output", *x.ref.shape)
    builder.call(f"{function}_forward", y.elements, y, x.ref, types="float")

    def backward(dy: Ref) -> list[Gradient | None]:
        builder.call(f"{function}_gradient", dy.elements, dy, dy, x.ref, y, types="float")
        return [Gradient(dy) if x.learns else None]

    return builder.on_backward(backward, inputs, Value(y, learns=x.learns))
