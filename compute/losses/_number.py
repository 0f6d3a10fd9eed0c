"""Losses of a number that go by its error alone."""

from __future__ import annotations

from streamtrain.compute.builder import EVALUATE, PREDICT, Builder, Value
from streamtrain.compute.input import InputShape, scale_of
from streamtrain.compute.losses._label import label_dtype
from streamtrain.compute.losses._scores import loss_block, rows_block
from streamtrain.compute.spec import Ref

PREDICTION = "z, or z * deviation + mean by standardize.label where that is there"   # z: the outputs of the last layer


def scale_of_label(builder: Builder, shape: InputShape, label: Ref, weight: Ref) -> tuple[Ref, Ref]:
    """The mean that is taken off a label, and what it is then multiplied by; it is never cut in the loss."""
    if shape.standardize_label:
        found = scale_of(builder, "label", [shape.standardize_label], label, weight)
        return found.mean, found.scale
    return builder.constant("label.mean", [0.0], "f32"), builder.constant("label.scale", [1.0], "f32")


def build_number(
    builder: Builder, shape: InputShape, z: Value, op: str, *settings: float, degree: int = 2
) -> tuple[Ref, Ref]:
    """A loss whose op takes `settings` behind the rows, and which grows with the label's unit to the power of `degree`.
    The constant prediction is the mean label of the rows before each row, and its loss what the op gives for that."""
    rows = builder.rows
    label, weight = builder.slot("label", label_dtype("number"), 1), builder.slot("weight", "f32", 1)
    p, dz, loss = (builder.buffer(name, rows, 1) for name in ("prediction", "loss.gradient", "loss"))
    mean, scale = scale_of_label(builder, shape, label, weight)
    with builder.during(*PREDICT):
        builder.call("unstandardize", rows, z.ref, mean, scale, p)
    with builder.during(*EVALUATE):
        base, share = loss_block(builder)
        _, errors = builder.statistic("score.errors", "score", "sum", 5)
        constant, constant_z, spare, constant_p, constant_loss = (
            builder.buffer(f"constant.{name}", rows, 1) for name in ("mean", "score", "gradient", "prediction", "loss")
        )
        builder.call("weight_sum", rows, weight, builder.step)
        builder.call("running_mean", rows, label, weight, base, share, mean, scale, constant, constant_z)
        to_label = (label, weight, mean, scale, builder.step)
        builder.call(op, rows, *settings, constant_z, *to_label, spare, constant_loss, constant_p)
        builder.call(op, rows, *settings, z.ref, *to_label, dz, loss, p)
        builder.call(
            "score_number", rows, degree, scale, p, loss, constant, constant_loss, label, weight, builder.step, share,
            errors, rows_block(builder),
        )
    return dz, p
