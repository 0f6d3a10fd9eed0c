"""y = a + b + …"""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain import _native
from streamtrain.compute.builder import Builder, Gradient, Value
from streamtrain.compute.options import Option
from streamtrain.compute.shape import alike
from streamtrain.compute.spec import Ref
from streamtrain.compute.vertices import Examples
from streamtrain.compute.vertices._reading import learns, to_each

HELP = "the sum of values"
LEAST, MOST = 2, _native.MAX_COLUMNS
SUMS = True
OPTIONS: dict[str, Option] = {}
EXAMPLES: Examples = (([3, 3], {}), ([2, 2, 2], {}))
shape = alike


def build(builder: Builder, name: str, inputs: Sequence[Value]) -> Value:
    y = builder.buffer(f"{name}.output", *inputs[0].ref.shape)
    total = inputs[0].ref
    for value in inputs[1:]:
        builder.call("add_forward", y.elements, y, total, value.ref)
        total = y

    def backward(dy: Ref) -> list[Gradient | None]:
        return to_each(builder, name, inputs, dy)

    return builder.on_backward(backward, inputs, Value(y, learns=learns(inputs)))
