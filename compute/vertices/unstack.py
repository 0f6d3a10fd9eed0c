"""One of the values that `stack` has put below each other."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.compute.builder import Builder, Gradient, Value
from streamtrain.compute.options import Option, Whole
from streamtrain.compute.shape import Mismatch, Shape
from streamtrain.compute.spec import PerRow, Ref
from streamtrain.compute.vertices import Examples, stack

HELP = "of what was stacked the value at `index`"
LEAST, MOST = 1, 1
OPTIONS: dict[str, Option] = {"index": Whole(most=stack.MOST - 1, default=0, help="number of the value, from 0")}
EXAMPLES: Examples = (([3], {}),)   # a stack of one


def shape(inputs: Sequence[Shape], index: int) -> Shape:
    (x,) = inputs
    if index >= x.times:
        raise Mismatch(f"expected an index below {x.times}, which are stacked, got {index}; set `index` lower")
    return x._replace(times=1)


def build(builder: Builder, name: str, inputs: Sequence[Value], index: int) -> Value:
    (x,) = inputs
    count, columns, rows = x.rows.times, x.columns, PerRow(x.rows.rows)
    y = builder.buffer(f"{name}.output", rows, columns)
    builder.call("copy_columns", rows, columns, count * columns, index * columns, columns, 0, x.ref, y)

    def backward(dy: Ref) -> list[Gradient | None]:
        if not x.learns:
            return [None]
        dx = builder.buffer(f"{name}.gradient", *x.ref.shape)
        builder.call("fill", dx.elements, 0.0, dx)
        builder.call("copy_columns", rows, columns, columns, 0, count * columns, index * columns, dy, dx)
        return [Gradient(dx)]

    return builder.on_backward(backward, inputs, Value(y, learns=x.learns))
