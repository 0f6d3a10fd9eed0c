"""y = the products of all pairs of fields, added: a factorization machine's second order (Rendle, 2010)."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain import _native
from streamtrain.compute.builder import Builder, Gradient, Value
from streamtrain.compute.options import Option, Whole
from streamtrain.compute.shape import Mismatch, Shape
from streamtrain.compute.spec import Ref
from streamtrain.compute.vertices import Examples

HELP = "the products of all pairs of fields, added to one column (a factorization machine)"
LEAST, MOST = 1, 1
OPTIONS: dict[str, Option] = {"width": Whole(least=1, most=_native.MAX_COLUMNS, help="columns of each field")}
EXAMPLES: Examples = (([12], {"width": 3}),)


def shape(inputs: Sequence[Shape], width: int) -> Shape:
    (x,) = inputs
    if x.columns % width or x.columns < 2 * width:
        raise Mismatch(f"expected two or more fields of {width} columns, got {x.columns} columns; set `width` so that "
                       "it divides them")
    return x._replace(columns=1)


def build(builder: Builder, name: str, inputs: Sequence[Value], width: int) -> Value:
    (x,), rows = inputs, inputs[0].rows
    fields = x.columns // width
    y = builder.buffer(f"{name}.output", rows, 1)
    builder.call("factorization_forward", rows, fields, width, x.ref, y)

    def backward(dy: Ref) -> list[Gradient | None]:
        if not x.learns:
            return [None]
        dx = builder.buffer(f"{name}.gradient", *x.ref.shape)
        builder.call("factorization_gradient", rows, fields, width, dy, x.ref, dx)
        return [Gradient(dx)]

    return builder.on_backward(backward, inputs, Value(y, learns=x.learns))
