"""The score blocks that losses share. A window's figures are those of a difference of two looks: all only grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamtrain.compute.builder import Builder
from streamtrain.compute.ops.score_confusion import MOST_CLASSES
from streamtrain.compute.ops.score_top import TOPS
from streamtrain.compute.options import ClassNumbers, Number, Option
from streamtrain.compute.spec import Ref

CLASSES_OPTIONS: dict[str, Option] = {
    "class_weights": ClassNumbers(help="by which the loss of the rows of each class is multiplied; figures are not"),
    "label_smoothing": Number(
        least=0, below=1, default=0.0, help="the part of each label that is spread over all classes; figures take the "
        "label itself"
    ),
}


def loss_block(builder: Builder) -> tuple[Ref, Ref]:
    """Weighted loss (of classes the log loss), weight, weighted loss of the constant prediction, weighted label (of a
    number)."""
    return builder.statistic("score.loss", "score", "sum", 4)


@dataclass(frozen=True)
class Prior:
    """The knowledge of the constant prediction over classes."""

    seen: tuple[Ref, Ref]   # weight by class, base and share
    class_weights: Ref | None   # [classes], where more than the log loss is minimised


def classes_block(
    builder: Builder, classes: int, z: Ref, class_weights: Sequence[float] = (), smoothing: float = 0.0
) -> Prior:
    """Weight by class: what the constant prediction knows. It is added to the logits z, [rows, 1 or classes], so that
    the model begins as the constant prediction and learns what lies beyond it."""
    seen = builder.statistic("label.classes", "statistics", "sum", classes)
    offset, weights = builder.buffer("label.prior", z.shape[1]), None
    if class_weights or smoothing:
        weights = builder.constant("class_weights", class_weights or [1.0] * classes, "f32")
        builder.call("smoothed_prior", z.shape[1], classes, smoothing, seen[0], weights, offset)
    else:
        builder.call("class_prior", z.shape[1], classes, seen[0], offset)
    builder.call("add_offset", builder.rows, z.shape[1], offset, z)
    return Prior(seen, weights)


def objective_block(builder: Builder) -> Ref:
    """Weighted loss, weighted loss of the constant prediction, where classes are learned by more than the log loss."""
    return builder.statistic("score.objective", "score", "sum", 2)[1]


def hits_block(builder: Builder) -> Ref:
    """Weight of the rows whose class the model, the constant prediction had right."""
    return builder.statistic("score.hits", "score", "sum", 2)[1]


def add_class_scores(builder: Builder, p: Ref, rank: Ref, label: Ref, weight: Ref) -> None:
    """Adds weight of rows whose label is among the likeliest TOPS classes, of those there are more of, and weight by
    label and predicted class where there are up to MOST_CLASSES. p: [rows, classes]; rank: how many classes are
    likelier than a row's label."""
    rows, classes = p.shape
    tops = [top for top in TOPS if top < classes]
    if tops:
        _, top = builder.statistic("score.top", "score", "sum", len(tops))
        builder.call("score_top", rows, len(tops), rank, weight, builder.constant("tops", tops, "i32"), top)
    if classes <= MOST_CLASSES:
        _, confusion = builder.statistic("score.confusion", "score", "sum", classes, classes)
        pair = builder.buffer("class.pair", rows, dtype="i32")
        builder.call("class_pair", rows, classes, p, rank, label, weight, pair)
        builder.call("score_confusion", rows, confusion.elements, pair, weight, confusion)


def rows_block(builder: Builder) -> Ref:
    """Rows of weight above 0: what windows are of."""
    return builder.statistic("score.rows", "score", "sum", 1, dtype="i64")[1]
