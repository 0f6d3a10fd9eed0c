"""y = activation(x w + b), fully connected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from streamtrain import _native
from streamtrain.compute import activations, initializers
from streamtrain.compute.activations import glorot
from streamtrain.compute.builder import Builder, Gradient, Value
from streamtrain.compute.initial_values import ZERO, Start
from streamtrain.compute.initializers import AUTO
from streamtrain.compute.layers._activated import ACTIVATION, NONE, activated, taken_back
from streamtrain.compute.ops.dense_forward import BUILT_IN
from streamtrain.compute.ops.dense_grad_weight import TOTALS
from streamtrain.compute.options import Option, Whole
from streamtrain.compute.shape import Shape
from streamtrain.compute.spec import Ref

HELP = "fully connected: y = activation(x w + b)"
OPTIONS: dict[str, Option] = {
    "size": Whole(least=1, most=_native.MAX_COLUMNS, help="number of outputs"),
    "activation": ACTIVATION,
    "init": initializers.option("as is usual for the activation, 0 where sums of them are the outputs"),
}
EXAMPLES = ({"size": 5}, {"size": 7, "activation": BUILT_IN})


def is_linear(size: int, activation: str, init: str = AUTO) -> bool:
    """Returns whether the layer may be asked to start at 0: a sum of such layers is an output."""
    return activation == NONE and init == AUTO


def shape(inputs: Sequence[Shape], size: int, **options: Any) -> Shape:
    return inputs[0]._replace(columns=size)


def build(
    builder: Builder, name: str, x: Value, size: int, activation: str, init: str = AUTO, zero: bool = False
) -> Value:
    """Adds <name>.weight [inputs, size] and <name>.bias [size]; `zero`: the weight starts at 0 (an output layer).

    Where it reads the batch's own numbers and has an activation, the bias starts as the weight of one more input would.
    From 0 all units would bend at the mean of the numbers, and two numbers leave little else to tell units apart.
    """
    rows, inputs = x.ref.shape
    begin = ZERO if zero else _begin(init, activation, inputs, size)
    weight, d_weight = builder.parameter(f"{name}.weight", inputs, size, begin=begin)
    spread = begin if activation != NONE and x.has_numbers else ZERO
    bias, d_bias = builder.parameter(f"{name}.bias", size, begin=spread, part="bias")
    linear = builder.buffer(f"{name}.linear", rows, size)
    built_in = activation == BUILT_IN
    builder.call("dense_forward", rows, inputs, size, x.ref, weight, bias, int(built_in), linear)
    y = activated(builder, name, NONE if built_in else activation, linear)

    def backward(dy: Ref) -> list[Gradient | None]:
        taken_back(builder, activation, dy, linear, y)
        totals = None
        if x.rows.times > 1:   # of a stack even a tile has more rows than are summed without them
            totals = builder.buffer(f"{name}.totals", inputs, TOTALS, dtype="f64")
        builder.call("dense_grad_weight", rows, inputs, size, x.ref, dy, d_weight, d_bias, totals)
        if not x.learns:
            return [None]
        first, end = x.learned or (0, inputs)
        dx = builder.buffer(f"{name}.input_gradient", rows, end - first)
        read = replace(weight, start=weight.start + first * size, shape=(end - first, size))
        builder.call("dense_grad_input", rows, end - first, size, dy, read, x.ref if x.masks else None, dx)
        return [Gradient(dx, masked=True, first=first)]

    return builder.on_backward(backward, [x], Value(y, masks=built_in))


def _begin(init: str, activation: str, inputs: int, outputs: int) -> Start:
    limit = glorot if activation == NONE else activations.get(activation).start
    return initializers.begin(init, Start.uniform(limit(inputs, outputs)), inputs, outputs)
