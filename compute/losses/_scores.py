"""The score blocks that losses share. A window's figures are those of a difference of two looks: all only grow."""

from streamtrain.compute.builder import Builder
from streamtrain.compute.spec import Ref


def loss_block(builder: Builder) -> tuple[Ref, Ref]:
    """Weighted loss, weight, weighted loss of the constant prediction, weighted label (of a number)."""
    return builder.statistic("score.loss", "score", "sum", 4)


def classes_block(builder: Builder, classes: int, z: Ref) -> tuple[Ref, Ref]:
    """Weight by class: what the constant prediction knows. It is added to the logits z, [rows, 1 or classes], so that
    the model begins as the constant prediction and learns what lies beyond it."""
    base, share = builder.statistic("label.classes", "statistics", "sum", classes)
    offset = builder.buffer("label.prior", z.shape[1])
    builder.call("class_prior", z.shape[1], classes, base, offset)
    builder.call("add_offset", builder.rows, z.shape[1], offset, z)
    return base, share


def hits_block(builder: Builder) -> Ref:
    """Weight of the rows whose class the model, the constant prediction had right."""
    return builder.statistic("score.hits", "score", "sum", 2)[1]


def rows_block(builder: Builder) -> Ref:
    """Rows of weight above 0: what windows are of."""
    return builder.statistic("score.rows", "score", "count", 1)[1]
