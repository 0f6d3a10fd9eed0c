"""y = a b, element by element."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.compute.builder import Builder, Value
from streamtrain.compute.options import Option
from streamtrain.compute.shape import alike
from streamtrain.compute.vertices import Examples, _pair

HELP = "the product of two values, element by element"
LEAST, MOST = 2, 2
OPTIONS: dict[str, Option] = {}
EXAMPLES: Examples = (([3, 3], {}),)
shape = alike


def build(builder: Builder, name: str, inputs: Sequence[Value]) -> Value:
    return _pair.build(builder, name, "multiply", inputs)
