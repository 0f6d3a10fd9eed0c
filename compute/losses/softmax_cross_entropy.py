"""Cross entropy over classes: one logit a class, predictions are class probabilities."""

from __future__ import annotations

from streamtrain.compute.builder import Builder, Value
from streamtrain.compute.input import InputShape
from streamtrain.compute.losses._label import label_dtype
from streamtrain.compute.losses._scores import classes_block, hits_block, loss_block, rows_block
from streamtrain.compute.spec import Ref

HELP = "a label of two or more classes; predicts their probabilities"
# z: the outputs of the last layer; n: the weights in label.classes
PREDICTION = "(n + 0.5) exp(z) / sum((n + 0.5) exp(z))"
LABEL = "class"
EXAMPLES: tuple[dict[str, object], ...] = ({"classes": 2}, {"classes": 5})


def outputs(shape: InputShape) -> int:
    return shape.classes


def build(builder: Builder, shape: InputShape, z: Value) -> tuple[Ref, Ref]:
    """Adds loss, gradient, scores and prediction; returns the gradient of z and the predictions."""
    rows, classes = builder.rows, shape.classes
    p, dz = (builder.buffer(name, rows, classes) for name in ("prediction", "loss.gradient"))
    loss = builder.buffer("loss", rows, 1)
    base_classes, share_classes = classes_block(builder, classes, z.ref)
    with builder.during("predict"):
        builder.call("softmax", rows, classes, z.ref, p)
    with builder.during("train"):
        label, weight = builder.slot("label", label_dtype(LABEL), 1), builder.slot("weight", "f32", 1)
        share = loss_block(builder)[1]
        hits, count = hits_block(builder), rows_block(builder)
        builder.call("weight_sum", rows, weight, builder.step)
        builder.call("softmax_cross_entropy", rows, classes, z.ref, label, weight, builder.step, dz, loss, p)
        builder.call(
            "score_classes", rows, classes, p, loss, label, weight, base_classes, builder.step, share, share_classes,
            hits, count,
        )
    return dz, p
