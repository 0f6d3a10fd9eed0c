"""y = (a + b + …) / how many there are."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain import _native
from streamtrain.compute.builder import Builder, Value
from streamtrain.compute.options import Option
from streamtrain.compute.shape import alike
from streamtrain.compute.vertices import Examples, add, scale

HELP = "the mean of values"
LEAST, MOST = 2, _native.MAX_COLUMNS
SUMS = True
OPTIONS: dict[str, Option] = {}
EXAMPLES: Examples = (([3, 3, 3], {}),)
shape = alike


def build(builder: Builder, name: str, inputs: Sequence[Value]) -> Value:
    return scale.build(builder, name, [add.build(builder, name, inputs)], by=1 / len(inputs))
