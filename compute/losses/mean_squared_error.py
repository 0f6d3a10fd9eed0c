"""Squared error of a number; a standardised label is put back into its own unit at prediction."""

from __future__ import annotations

from streamtrain.compute.builder import EVALUATE, PREDICT, Builder, Value
from streamtrain.compute.input import InputShape
from streamtrain.compute.losses._label import label_dtype
from streamtrain.compute.losses._number import PREDICTION, scale_of_label
from streamtrain.compute.losses._scores import loss_block, rows_block
from streamtrain.compute.options import Option
from streamtrain.compute.spec import Ref

__all__ = ["PREDICTION"]

HELP = "a label that is a number; predicts it"
OPTIONS: dict[str, Option] = {}
LABEL = "number"
EXAMPLES: tuple[dict[str, object], ...] = ({}, {"standardize_label": True})


def outputs(shape: InputShape) -> int:
    return 1


def build(builder: Builder, shape: InputShape, z: Value) -> tuple[Ref, Ref]:
    """Adds loss, gradient, scores and prediction; returns the gradient of z and the predictions."""
    rows = builder.rows
    label, weight = builder.slot("label", label_dtype(LABEL), 1), builder.slot("weight", "f32", 1)
    p, dz, loss = (builder.buffer(name, rows, 1) for name in ("prediction", "loss.gradient", "loss"))
    mean, scale = scale_of_label(builder, shape, label, weight)
    with builder.during(*PREDICT):
        builder.call("unstandardize", rows, z.ref, mean, scale, p)
    with builder.during(*EVALUATE):
        base, share = loss_block(builder)
        _, errors = builder.statistic("score.errors", "score", "sum", 5)
        builder.call("weight_sum", rows, weight, builder.step)
        builder.call("mean_squared_error", rows, z.ref, label, weight, mean, scale, builder.step, dz, loss, p)
        builder.call(
            "score_regression", rows, p, loss, label, weight, scale, base, builder.step, share, errors,
            rows_block(builder),
        )
    return dz, p
