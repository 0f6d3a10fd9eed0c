"""y = [a b …], side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from streamtrain import _native
from streamtrain.compute.builder import Builder, Gradient, Value
from streamtrain.compute.options import Option
from streamtrain.compute.shape import Shape, same_times
from streamtrain.compute.spec import Ref, Refs
from streamtrain.compute.vertices import Examples
from streamtrain.compute.vertices._reading import learns

HELP = "values side by side"
LEAST, MOST = 1, _native.MAX_COLUMNS
OPTIONS: dict[str, Option] = {}
EXAMPLES: Examples = (([3, 4, 1], {}),)


def shape(inputs: Sequence[Shape]) -> Shape:
    return Shape(same_times(inputs), sum(each.columns for each in inputs))


def build(builder: Builder, name: str, inputs: Sequence[Value]) -> Value:
    rows, width = inputs[0].rows, sum(value.columns for value in inputs)
    y = builder.buffer(f"{name}.output", rows, width)
    ends = accumulate(value.columns for value in inputs)
    parts = [(end - value.columns, value.columns) for end, value in zip(ends, inputs, strict=True)]
    spans = builder.constant(f"{name}.parts", parts, "i64")
    builder.call("concat_forward", rows, len(inputs), width, spans, Refs(tuple(value.ref for value in inputs)), y)

    def backward(dy: Ref) -> list[Gradient | None]:
        found = [Gradient(builder.buffer(f"{name}.gradient", rows, value.columns)) if value.learns else None
                 for value in inputs]
        pairs = [(part, to.ref) for part, to in zip(parts, found, strict=True) if to is not None]
        spans = builder.constant(f"{name}.gradient.parts", [part for part, _ in pairs], "i64")
        builder.call("concat_gradient", rows, len(pairs), width, spans, dy, Refs(tuple(ref for _, ref in pairs)))
        return found

    return builder.on_backward(backward, inputs, Value(y, learns=learns(inputs)))
