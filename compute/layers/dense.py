"""y = activation(x w + b), fully connected."""

from __future__ import annotations

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.builder import Builder, Value
from streamtrain.compute.ops.activation import glorot
from streamtrain.compute.ops.dense_forward import BUILT_IN
from streamtrain.compute.ops.dense_grad_weight import CHAIN_ROWS, TOTALS
from streamtrain.compute.options import Option, Whole, Word
from streamtrain.compute.spec import Ref

HELP = "fully connected: y = activation(x w + b)"
NONE = "none"
OPTIONS: dict[str, Option] = {
    "size": Whole(least=1, most=_native.MAX_COLUMNS, help="outputs"),
    "activation": Word(of=lambda: [NONE, *ops.activations()], default=NONE, help="what is done to each output"),
}
EXAMPLES = ({"size": 5}, {"size": 7, "activation": BUILT_IN})


def build(builder: Builder, name: str, x: Value, size: int, activation: str, zero: bool = False) -> Value:
    """Adds <name>.weight [inputs, size] and <name>.bias [size]; `zero`: the weight starts at 0 (an output layer)."""
    rows, inputs = x.ref.shape
    start = glorot if activation == NONE else ops.activations()[activation].start
    weight, d_weight = builder.parameter(f"{name}.weight", inputs, size, limit=0.0 if zero else start(inputs, size))
    bias, d_bias = builder.parameter(f"{name}.bias", size)
    linear = builder.buffer(f"{name}.linear", rows, size)
    built_in = activation == BUILT_IN
    builder.call("dense_forward", rows, inputs, size, x.ref, weight, bias, int(built_in), linear)
    y = linear
    if activation != NONE and not built_in:
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
    return Value(y, masks=built_in)
