"""Rows below each other: of each row of the batch that of the first value, then that of the second, and so on. A layer
behind it makes of each what it makes of one alone, with one set of parameters, until `unstack` takes them apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.compute.builder import Builder, Gradient, Value
from streamtrain.compute.options import Option
from streamtrain.compute.shape import Shape, alike
from streamtrain.compute.spec import Ref
from streamtrain.compute.vertices import Examples
from streamtrain.compute.vertices._reading import learns

HELP = "the rows of values below each other, for layers that are to treat them alike"
LEAST, MOST = 2, 64
OPTIONS: dict[str, Option] = {}
EXAMPLES: Examples = ()   # what it makes is taken apart by unstack


def shape(inputs: Sequence[Shape]) -> Shape:
    one = alike(inputs)
    return one._replace(times=len(inputs) * one.times)


def build(builder: Builder, name: str, inputs: Sequence[Value]) -> Value:
    rows, columns, count = inputs[0].rows, inputs[0].columns, len(inputs)
    y = builder.buffer(f"{name}.output", rows * count, columns)   # as [rows, count x columns] they lie side by side
    for at, value in enumerate(inputs):
        builder.call("copy_columns", rows, columns, columns, 0, count * columns, at * columns, value.ref, y)

    def backward(dy: Ref) -> list[Gradient | None]:
        found: list[Gradient | None] = []
        for at, value in enumerate(inputs):
            if not value.learns:
                found.append(None)
                continue
            dx = builder.buffer(f"{name}.gradient", rows, columns)
            builder.call("copy_columns", rows, columns, count * columns, at * columns, columns, 0, dy, dx)
            found.append(Gradient(dx))
        return found

    return builder.on_backward(backward, inputs, Value(y, learns=learns(inputs)))
