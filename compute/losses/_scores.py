"""The score block of every loss: weighted loss, weight, weighted loss of the constant prediction, weighted label."""

from streamtrain.compute.builder import Builder
from streamtrain.compute.spec import Ref

LOSS = "score.loss"


def loss_block(builder: Builder) -> tuple[Ref, Ref]:
    return builder.statistic(LOSS, "score", "sum", 4)
