"""Cross entropy over classes: one logit a class, predictions are class probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamtrain.compute.builder import EVALUATE, PREDICT, Builder, Value
from streamtrain.compute.input import InputShape
from streamtrain.compute.losses._label import label_dtype
from streamtrain.compute.losses._scores import (
    CLASSES_OPTIONS,
    Prior,
    add_class_scores,
    classes_block,
    hits_block,
    loss_block,
    objective_block,
    rows_block,
)
from streamtrain.compute.options import Option
from streamtrain.compute.spec import Ref

HELP = "a label of two or more classes; predicts their probabilities"
# z: the outputs of the last layer; n: the weights in label.classes; c, e: class_weights (1 without) and label_smoothing
PREDICTION = "q exp(z) / sum(q exp(z)), q = (1 - e) c (n + 0.5) / sum(c (n + 0.5)) + e / classes"
OPTIONS: dict[str, Option] = CLASSES_OPTIONS
LABEL = "class"
EXAMPLES: tuple[dict[str, object], ...] = (
    {"classes": 2}, {"classes": 5}, {"settings": {"class_weights": [0.5, 3.0, 1.0]}},
    {"classes": 5, "settings": {"label_smoothing": 0.1}},
)


def outputs(shape: InputShape) -> int:
    return shape.classes


def build(
    builder: Builder, shape: InputShape, z: Value, class_weights: Sequence[float] = (), label_smoothing: float = 0.0
) -> tuple[Ref, Ref]:
    """Adds loss, gradient, scores and prediction; returns the gradient of z and the predictions."""
    rows, classes, step = builder.rows, shape.classes, builder.step
    output, p, dz = (builder.buffer(name, rows, classes) for name in ("prediction", "probability", "loss.gradient"))
    loss, rank = builder.buffer("loss", rows, 1), builder.buffer("rank", rows, dtype="i32")
    prior = classes_block(builder, classes, z.ref, class_weights, label_smoothing)
    with builder.during(*PREDICT):
        builder.call("softmax", rows, classes, z.ref, output)
    with builder.during(*EVALUATE):
        label, weight = builder.slot("label", label_dtype(LABEL), 1), builder.slot("weight", "f32", 1)
        share = loss_block(builder)[1]
        hits, count = hits_block(builder), rows_block(builder)
        builder.call("weight_sum", rows, weight, step)
        builder.call("softmax_cross_entropy", rows, classes, z.ref, label, weight, step, dz, loss, p, rank)
        add_score = None
        if prior.class_weights is not None:
            add_score = _minimise(builder, prior, label_smoothing, (label, weight), (z.ref, p, loss, dz))
        builder.call(
            "score_classes", rows, classes, rank, loss, label, weight, prior.seen[0], step, share, prior.seen[1],
            hits, count,
        )
        add_class_scores(builder, p, rank, label, weight)
        if add_score is not None:
            add_score()
    return dz, output


def _minimise(
    builder: Builder, prior: Prior, smoothing: float, given: tuple[Ref, Ref], model: tuple[Ref, Ref, Ref, Ref]
) -> Callable[[], None]:
    """Adds the weighted, smoothed loss and its gradient, of the `model` (z, p, log loss, gradient) and of the constant
    prediction; what it returns adds their score."""
    (rows, classes), step = model[0].shape, builder.step
    constant_z, constant_p, spare = (
        builder.buffer(f"constant.{name}", rows, classes) for name in ("score", "prediction", "gradient")
    )
    plain, constant_loss, loss = (
        builder.buffer(name, rows, 1) for name in ("constant.log_loss", "constant.loss", "objective")
    )
    rank = builder.buffer("constant.rank", rows, dtype="i32")
    seen = builder.buffer("constant.seen", classes, dtype="f64")
    builder.call("running_shares", rows, classes, smoothing, *given, *prior.seen, prior.class_weights, seen, constant_z)
    builder.call("softmax_cross_entropy", rows, classes, constant_z, *given, step, spare, plain, constant_p, rank)
    for (z, p, log_loss, dz), to in (((constant_z, constant_p, plain, spare), constant_loss), (model, loss)):
        builder.call(
            "class_objective", rows, classes, smoothing, z, p, log_loss, *given, prior.class_weights, step, dz, to
        )
    return lambda: builder.call("score_objective", rows, loss, constant_loss, given[1], step, objective_block(builder))
