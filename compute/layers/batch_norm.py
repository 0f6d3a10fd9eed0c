"""y = (x - mean) / deviation scale + shift, by the mean and variance of each column over the batch; in a prediction by
running ones (Ioffe, Szegedy: Batch normalization, 2015). Every row of weight above 0 counts for one, whatever its
weight: statistics are those of the rows that come, weights are of the loss.
"""

from __future__ import annotations

from streamtrain.compute.builder import FORWARD, INFERENCE, Builder, Gradient, Value
from streamtrain.compute.initial_values import Start
from streamtrain.compute.layers._activated import ACTIVATION, activated, taken_back
from streamtrain.compute.options import Number, Option, Whole
from streamtrain.compute.shape import alike
from streamtrain.compute.spec import Ref

HELP = "columns of mean 0 and variance 1 over a batch, by a learned scale and shift; in a prediction by running ones"
OPTIONS: dict[str, Option] = {
    "epsilon": Number(least=1e-12, most=1, help="on top of the variance; 1e-5 is usual"),
    "momentum": Number(above=0, most=1, default=0.1, help="how far a batch moves the running mean and variance"),
    "least_rows": Whole(least=2, most=1 << 20, default=32, help="a smaller batch is normalised as a prediction is"),
    "activation": ACTIVATION,
}
EXAMPLES = ({"epsilon": 1e-5}, {"epsilon": 1e-3, "momentum": 0.5, "least_rows": 2}, {"epsilon": 0.1, "least_rows": 60})
shape = alike


def build(
    builder: Builder, name: str, x: Value, epsilon: float, momentum: float, least_rows: int, activation: str
) -> Value:
    """Adds <name>.scale, .running_variance [columns], 1 at the start, <name>.shift, .running_mean [columns], 0.

    What runs is trained as parameters are, each worker's on from its round's start, and averaged at its end: a round
    done again has the same. A batch of fewer than `least_rows` is normalised by it, as a prediction is, and moves it by
    as much less: two rows say next to nothing of a mean, and streams begin with one.
    """
    rows, columns = x.ref.shape
    one = Start.constant(1.0)
    scale, d_scale = builder.parameter(f"{name}.scale", columns, begin=one, part="norm")
    shift, d_shift = builder.parameter(f"{name}.shift", columns, part="norm")
    running = (builder.average(f"{name}.running_mean", columns),
               builder.average(f"{name}.running_variance", columns, begin=one))
    total, squares, mean, factor = (
        builder.buffer(f"{name}.{part}", columns) for part in ("sum", "squares", "mean", "factor")
    )
    z, count = builder.buffer(f"{name}.linear", rows, columns), builder.buffer(f"{name}.count", 1)
    with builder.during(*FORWARD):
        weight = _weights(builder, name, x)
        builder.call("batch_norm_sum", rows, columns, x.ref, weight, total, count)
        builder.call("batch_norm_squares", rows, columns, x.ref, weight, total, count, squares)
        builder.call("batch_norm_settle", columns, least_rows, momentum, epsilon, count, total, squares, builder.step,
                     *running, mean, factor)
        builder.call("batch_norm_forward", rows, columns, x.ref, mean, factor, scale, shift, z)
    with builder.during(*INFERENCE):
        builder.call("batch_norm_factor", columns, epsilon, running[1], factor)
        builder.call("batch_norm_forward", rows, columns, x.ref, running[0], factor, scale, shift, z)
    y = activated(builder, name, activation, z)

    def backward(dy: Ref) -> list[Gradient | None]:
        taken_back(builder, activation, dy, z, y)
        builder.call("batch_norm_grad_scale", rows, columns, dy, x.ref, weight, mean, factor, d_scale, d_shift)
        if not x.learns:
            return [None]
        dx = builder.buffer(f"{name}.input_gradient", rows, columns)
        builder.call("batch_norm_gradient", rows, columns, least_rows, dy, x.ref, weight, count, scale, mean, factor,
                     d_scale, d_shift, dx)
        return [Gradient(dx)]

    return builder.on_backward(backward, [x], Value(y))


def _weights(builder: Builder, name: str, x: Value) -> Ref:
    """Returns the weight of each row of x. The batch's weights repeat for as many rows as are stacked."""
    weight, times = builder.slot("weight", "f32", 1), x.rows.times
    if times == 1:
        return weight
    stacked = builder.buffer(f"{name}.weight", x.rows)
    for at in range(times):
        builder.call("copy_columns", builder.rows, 1, 1, 0, times, at, weight, stacked)
    return stacked
