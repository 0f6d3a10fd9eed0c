"""Losses of a 0/1 label: what they are judged by is the same whatever is minimised."""

from __future__ import annotations

from collections.abc import Callable

from streamtrain import _native
from streamtrain.compute.builder import Builder
from streamtrain.compute.losses._label import label_dtype
from streamtrain.compute.losses._scores import Prior, hits_block, loss_block, objective_block, rows_block
from streamtrain.compute.ops.score_binary import BINS, MOMENTS
from streamtrain.compute.ops.tally import ENTRIES, WIDTH
from streamtrain.compute.spec import Ref

Constant = Callable[[Ref], None]   # adds the scores of the constant prediction, [rows, 1]
# z, its probability, its log loss, where the gradient and the loss go: adds what is minimised
Minimised = Callable[[Ref, Ref, Ref, Ref, Ref], None]


def label_and_weight(builder: Builder) -> tuple[Ref, Ref]:
    return builder.slot("label", label_dtype("binary"), 1), builder.slot("weight", "f32", 1)


def constant_odds(builder: Builder, prior: Prior, smoothing: float = 0.0) -> Constant:
    """Returns the constant prediction: odds from the classes' shares in the rows before each row, times their class
    weights."""

    def add(z: Ref) -> None:
        seen, given = builder.buffer("constant.seen", 2, dtype="f64"), label_and_weight(builder)
        builder.call("running_odds", builder.rows, smoothing, *given, *prior.seen, prior.class_weights, seen, z)

    return add


def learn(
    builder: Builder, z: Ref, p: Ref, seen: tuple[Ref, Ref], constant: Constant | None = None,
    minimised: Minimised | None = None,
) -> Ref:
    """Adds loss, gradient and scores to the training; returns the gradient of z. `p` gets the probabilities, `seen`
    are the base and the share of label.classes. Without the last two the log loss is minimised."""
    rows, step = builder.rows, builder.step
    dz, loss = (builder.buffer(name, rows, 1) for name in ("loss.gradient", "loss"))
    label, weight = label_and_weight(builder)
    share, hits, count = loss_block(builder)[1], hits_block(builder), rows_block(builder)
    _, histogram = builder.statistic("score.histogram", "score", "sum", 2, BINS, MOMENTS)
    builder.call("weight_sum", rows, weight, step)
    builder.call("binary_cross_entropy", rows, z, label, weight, step, dz, loss, p)
    constant_loss = objective = None
    if constant is not None and minimised is not None:
        constant_z, constant_p, plain, spare, constant_loss, objective = (
            builder.buffer(name, rows, 1)
            for name in ("constant.score", "constant.prediction", "constant.log_loss", "constant.gradient",
                         "constant.loss", "objective")
        )
        constant(constant_z)
        builder.call("binary_cross_entropy", rows, constant_z, label, weight, step, spare, plain, constant_p)
        minimised(constant_z, constant_p, plain, spare, constant_loss)
        minimised(z, p, loss, dz, objective)
    builder.call("score_binary", rows, z, loss, label, weight, seen[0], step, share, seen[1], hits, count, histogram)
    tally = builder.statistic(f"score.{_native.DISTINCT}", "score", "tally", 1 + ENTRIES, WIDTH)
    builder.call("tally", rows, z, label, weight, *tally)
    if objective is not None:
        builder.call("score_objective", rows, objective, constant_loss, weight, step, objective_block(builder))
    return dz
