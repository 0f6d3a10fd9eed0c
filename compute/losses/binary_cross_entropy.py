"""Binary cross entropy of a 0/1 label: one logit, predictions are probabilities."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.compute.builder import EVALUATE, PREDICT, Builder, Value
from streamtrain.compute.input import InputShape
from streamtrain.compute.losses._binary import constant_odds, label_and_weight, learn
from streamtrain.compute.losses._scores import CLASSES_OPTIONS, classes_block
from streamtrain.compute.options import Option
from streamtrain.compute.spec import Ref

HELP = "a 0/1 label; predicts its probability"
# z: the outputs of the last layer; n: the weights in label.classes; c, e: class_weights (1 without) and label_smoothing
PREDICTION = "1 / (1 + exp(-z - log(q[1] / q[0]))), q = (1 - e) c (n + 0.5) / sum(c (n + 0.5)) + e / 2"
OPTIONS: dict[str, Option] = CLASSES_OPTIONS
LABEL = "binary"
EXAMPLES: tuple[dict[str, object], ...] = (
    {}, {"settings": {"class_weights": [0.5, 3.0]}}, {"settings": {"label_smoothing": 0.1}},
)


def outputs(shape: InputShape) -> int:
    return 1


def build(
    builder: Builder, shape: InputShape, z: Value, class_weights: Sequence[float] = (), label_smoothing: float = 0.0
) -> tuple[Ref, Ref]:
    """Adds loss, gradient, scores and prediction; returns the gradient of z and the predictions."""
    rows = builder.rows
    p = builder.buffer("prediction", rows, 1)
    prior = classes_block(builder, 2, z.ref, class_weights, label_smoothing)
    with builder.during(*PREDICT):
        builder.call("sigmoid_forward", rows, p, z.ref, types="float")

    def minimised(z: Ref, p: Ref, plain: Ref, dz: Ref, loss: Ref) -> None:
        builder.call(
            "binary_objective", rows, label_smoothing, z, p, plain, *label_and_weight(builder), prior.class_weights,
            builder.step, dz, loss,
        )

    with builder.during(*EVALUATE):
        constant = constant_odds(builder, prior, label_smoothing) if prior.class_weights else None
        dz = learn(builder, z.ref, p, prior.seen, constant, minimised)
    return dz, p
