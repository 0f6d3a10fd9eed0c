"""Binary cross entropy of a 0/1 label: one logit, predictions are probabilities."""

from __future__ import annotations

from streamtrain.compute.builder import Builder, Value
from streamtrain.compute.input import InputShape
from streamtrain.compute.losses._label import label_dtype
from streamtrain.compute.losses._scores import classes_block, hits_block, loss_block, rows_block
from streamtrain.compute.ops.score_binary import BINS, MOMENTS
from streamtrain.compute.spec import Ref

HELP = "a 0/1 label; predicts its probability"
# z: the outputs of the last layer; n: the weights in label.classes
PREDICTION = "1 / (1 + exp(-z - log((n[1] + 0.5) / (n[0] + 0.5))))"
LABEL = "binary"
EXAMPLES: tuple[dict[str, object], ...] = ({},)   # of the input shape's label settings


def outputs(shape: InputShape) -> int:
    return 1


def build(builder: Builder, shape: InputShape, z: Value) -> tuple[Ref, Ref]:
    """Adds loss, gradient, scores and prediction; returns the gradient of z and the predictions."""
    rows = builder.rows
    p, dz, loss = (builder.buffer(name, rows, 1) for name in ("prediction", "loss.gradient", "loss"))
    base_classes, share_classes = classes_block(builder, 2, z.ref)
    with builder.during("predict"):
        builder.call("sigmoid_forward", rows, p, z.ref, types="float")
    with builder.during("train"):
        label, weight = builder.slot("label", label_dtype(LABEL), 1), builder.slot("weight", "f32", 1)
        share = loss_block(builder)[1]
        hits, count = hits_block(builder), rows_block(builder)
        _, histogram = builder.statistic("score.histogram", "score", "sum", 2, BINS, MOMENTS)
        builder.call("weight_sum", rows, weight, builder.step)
        builder.call("binary_cross_entropy", rows, z.ref, label, weight, builder.step, dz, loss, p)
        builder.call(
            "score_binary", rows, z.ref, loss, label, weight, base_classes, builder.step, share, share_classes, hits,
            count, histogram,
        )
    return dz, p
