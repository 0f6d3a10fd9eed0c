"""y = sum of a b, row by row: one column."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.compute.builder import Builder, Value
from streamtrain.compute.options import Option
from streamtrain.compute.shape import one_column
from streamtrain.compute.vertices import Examples, _pair

HELP = "the product of two rows, one column"
LEAST, MOST = 2, 2
OPTIONS: dict[str, Option] = {}
EXAMPLES: Examples = (([4, 4], {}),)
shape = one_column


def build(builder: Builder, name: str, inputs: Sequence[Value]) -> Value:
    return _pair.of_rows(builder, name, "dot", inputs)
