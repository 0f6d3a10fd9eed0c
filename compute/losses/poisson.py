"""Poisson loss of a count by its log rate (Nelder, Wedderburn: Generalized linear models, 1972)."""

from __future__ import annotations

from streamtrain.compute.builder import EVALUATE, PREDICT, Builder, Value
from streamtrain.compute.input import InputShape
from streamtrain.compute.losses._label import label_dtype
from streamtrain.compute.losses._scores import loss_block, rows_block
from streamtrain.compute.options import Option
from streamtrain.compute.spec import Ref

HELP = "a label that is a count, or an amount from 0 on; predicts its rate"
# z: the outputs of the last layer; n: the weight and the weighted label in label.total
PREDICTION = "exp(min(z + log((n[1] + 0.5) / (n[0] + 0.5)), 88))"
OPTIONS: dict[str, Option] = {}
LABEL = "count"
EXAMPLES: tuple[dict[str, object], ...] = ({},)


def outputs(shape: InputShape) -> int:
    return 1


def build(builder: Builder, shape: InputShape, z: Value) -> tuple[Ref, Ref]:
    """Adds loss, gradient, scores and prediction; returns the gradient of z and the predictions. The model begins at
    the mean label so far, which is the constant prediction too."""
    rows = builder.rows
    p, dz, loss = (builder.buffer(name, rows, 1) for name in ("prediction", "loss.gradient", "loss"))
    base_seen, share_seen = builder.statistic("label.total", "statistics", "sum", 2)
    offset = builder.buffer("label.prior", 1)
    builder.call("poisson_prior", base_seen, offset)
    builder.call("add_offset", rows, 1, offset, z.ref)
    with builder.during(*PREDICT):
        builder.call("poisson_rate", rows, z.ref, p)
    with builder.during(*EVALUATE):
        label, weight = builder.slot("label", label_dtype(LABEL), 1), builder.slot("weight", "f32", 1)
        base, share = loss_block(builder)
        _, errors = builder.statistic("score.errors", "score", "sum", 5)
        constant, constant_z, spare, constant_p, constant_loss = (
            builder.buffer(f"constant.{name}", rows, 1) for name in ("mean", "score", "gradient", "prediction", "loss")
        )
        builder.call("weight_sum", rows, weight, builder.step)
        builder.call("poisson_seen", rows, label, weight, share_seen)
        builder.call("running_rate", rows, label, weight, base, share, constant, constant_z)
        builder.call("poisson", rows, constant_z, label, weight, builder.step, spare, constant_loss, constant_p)
        builder.call("poisson", rows, z.ref, label, weight, builder.step, dz, loss, p)
        scale = builder.constant("label.scale", [1.0], "f32")
        builder.call(
            "score_number", rows, 0, scale, p, loss, constant, constant_loss, label, weight, builder.step, share,
            errors, rows_block(builder),
        )
    return dz, p
