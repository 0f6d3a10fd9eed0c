"""The shared parts of the layers that bring each row to one size."""

from __future__ import annotations

from streamtrain.compute.builder import Builder, Gradient, Value
from streamtrain.compute.initial_values import Start
from streamtrain.compute.layers._activated import ACTIVATION, activated, taken_back
from streamtrain.compute.options import Number, Option
from streamtrain.compute.spec import Ref

OPTIONS: dict[str, Option] = {
    "epsilon": Number(least=1e-12, most=1, help="on top of the mean of squares; 1e-5 is usual"),
    "activation": ACTIVATION,
}


def build(builder: Builder, name: str, x: Value, centers: bool, epsilon: float, activation: str) -> Value:
    """Adds <name>.scale [columns], 1 at the start, and where it `centers` <name>.shift [columns], 0 at the start."""
    rows, columns = x.ref.shape
    scale, d_scale = builder.parameter(f"{name}.scale", columns, begin=Start.constant(1.0), part="norm")
    shift, d_shift = builder.parameter(f"{name}.shift", columns, part="norm") if centers else (None, None)
    z, mean, factor = (builder.buffer(f"{name}.{part}", *shape)
                       for part, shape in (("linear", (rows, columns)), ("mean", (rows,)), ("factor", (rows,))))
    builder.call("row_norm_forward", rows, columns, int(centers), epsilon, x.ref, scale, shift, z, mean, factor)
    y = activated(builder, name, activation, z)

    def backward(dy: Ref) -> list[Gradient | None]:
        taken_back(builder, activation, dy, z, y)
        builder.call("row_norm_grad_scale", rows, columns, dy, x.ref, mean, factor, d_scale, d_shift)
        if not x.learns:
            return [None]
        dx = builder.buffer(f"{name}.input_gradient", rows, columns)
        builder.call("row_norm_gradient", rows, columns, int(centers), dy, x.ref, scale, mean, factor, dx)
        return [Gradient(dx)]

    return builder.on_backward(backward, [x], Value(y))
