"""Products of the inputs, one order more with each layer: x' = x0 (x w + b) + x (Wang et al.: DCN V2, 2021)."""

from __future__ import annotations

from streamtrain.compute import initializers
from streamtrain.compute.builder import Builder, Value
from streamtrain.compute.layers import dense
from streamtrain.compute.layers._activated import NONE
from streamtrain.compute.options import Option, Whole
from streamtrain.compute.shape import alike
from streamtrain.compute.vertices import add, multiply

HELP = "a cross network: x' = x0 (x w + b) + x, so many times, with as many columns as the input x0"
OPTIONS: dict[str, Option] = {
    "depth": Whole(least=1, most=64, help="number of cross layers"),
    "init": initializers.option("glorot_uniform"),
}
EXAMPLES = ({"depth": 2},)
shape = alike


def build(builder: Builder, name: str, x: Value, depth: int, init: str) -> Value:
    """Adds <name>.<at>.weight [columns, columns] and <name>.<at>.bias [columns] for each time from 0."""
    crossed = x
    for at in range(depth):
        weighed = dense.build(builder, f"{name}.{at}", crossed, x.columns, NONE, init)
        product = multiply.build(builder, f"{name}.{at}.product", [x, weighed])
        crossed = add.build(builder, f"{name}.{at}.sum", [product, crossed])
    return crossed
