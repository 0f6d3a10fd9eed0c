"""y = activation(x w + b), fully connected."""

from __future__ import annotations

import math

from streamtrain.compute.builder import Builder, Value
from streamtrain.compute.ops.dense_grad_weight import CHAIN_ROWS, TOTALS
from streamtrain.compute.spec import Ref

HELP = "fully connected: dense = outputs, activation = none | relu | tanh | sigmoid | mish"
ACTIVATIONS = ("none", "relu", "tanh", "sigmoid", "mish")
OPTIONS = {"activation": ACTIVATIONS}   # option -> allowed values, the default first
EXAMPLES = ({"dense": 5}, {"dense": 7, "activation": "relu"}, {"dense": 4, "activation": "tanh"},
            {"dense": 4, "activation": "sigmoid"}, {"dense": 3, "activation": "mish"})


def start_limit(inputs: int, outputs: int, activation: str) -> float:
    """Of the uniform start: He et al. 2015 where half of the inputs are shut, else Glorot and Bengio 2010."""
    fan = inputs if activation in ("relu", "mish") else inputs + outputs
    return math.sqrt(6 / fan)


def build(builder: Builder, name: str, x: Value, size: int, activation: str = "none", zero: bool = False) -> Value:
    """Adds <name>.weight [inputs, size] and <name>.bias [size]; `zero`: the weight starts at 0 (an output layer)."""
    rows, inputs = x.ref.shape
    limit = 0.0 if zero else start_limit(inputs, size, activation)
    weight, d_weight = builder.parameter(f"{name}.weight", inputs, size, limit=limit)
    bias, d_bias = builder.parameter(f"{name}.bias", size)
    linear = builder.buffer(f"{name}.linear", rows, size)
    relu = activation == "relu"
    builder.call("dense_forward", rows, inputs, size, x.ref, weight, bias, int(relu), linear)
    y = linear
    if activation not in ("none", "relu"):
        y = builder.buffer(f"{name}.output", rows, size)
        builder.call(f"{activation}_forward", rows * size, y, linear, types="float")

    def backward(dy: Ref) -> tuple[Ref | None, bool]:
        if y is not linear:
            builder.call(f"{activation}_gradient", rows * size, dy, dy, linear, y, types="float")
        totals = builder.buffer(f"{name}.totals", inputs, TOTALS, dtype="f64") if rows > CHAIN_ROWS else None
        builder.call("dense_grad_weight", rows, inputs, size, x.ref, dy, d_weight, d_bias, totals)
        if not x.learns:
            return None, False
        dx = builder.buffer(f"{name}.input_gradient", rows, inputs)
        builder.call("dense_grad_input", rows, inputs, size, dy, weight, x.ref if x.masks else None, dx)
        return dx, True

    builder.on_backward(backward, x)
    return Value(y, masks=relu)
