"""y = max(a, b, …), element by element."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from streamtrain import _native
from streamtrain.compute.builder import Builder, Value
from streamtrain.compute.options import Option
from streamtrain.compute.shape import alike
from streamtrain.compute.vertices import Examples, _pair

HELP = "the largest of values, element by element"
LEAST, MOST = 2, _native.MAX_COLUMNS
OPTIONS: dict[str, Option] = {}
EXAMPLES: Examples = (([3, 3], {}), ([2, 2, 2], {}))
shape = alike


def build(builder: Builder, name: str, inputs: Sequence[Value]) -> Value:
    return reduce(lambda a, b: _pair.build(builder, name, "maximum", [a, b]), inputs)
