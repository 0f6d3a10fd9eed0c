"""y = [a b …], side by side."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain import _native
from streamtrain.compute.builder import Builder, Gradient, Value
from streamtrain.compute.options import Option
from streamtrain.compute.spec import Ref
from streamtrain.compute.vertices import Examples
from streamtrain.compute.vertices._reading import learns, same_rows

HELP = "values side by side"
LEAST, MOST = 1, _native.MAX_COLUMNS
OPTIONS: dict[str, Option] = {}
EXAMPLES: Examples = (([3, 4, 1], {}),)


def build(builder: Builder, name: str, inputs: Sequence[Value]) -> Value:
    rows, width = same_rows(inputs), sum(value.columns for value in inputs)
    y, at = builder.buffer(f"{name}.output", rows, width), 0
    places = []
    for value in inputs:
        builder.call("copy_columns", rows, value.columns, value.columns, 0, width, at, value.ref, y)
        places.append(at)
        at += value.columns

    def backward(dy: Ref) -> list[Gradient | None]:
        found: list[Gradient | None] = []
        for value, first in zip(inputs, places, strict=True):
            if not value.learns:
                found.append(None)
                continue
            dx = builder.buffer(f"{name}.gradient", rows, value.columns)
            builder.call("copy_columns", rows, value.columns, width, first, value.columns, 0, dy, dx)
            found.append(Gradient(dx))
        return found

    return builder.on_backward(backward, inputs, Value(y, learns=learns(inputs)))
