"""Hinge loss of a 0/1 label: one margin (Cortes, Vapnik: Support-vector networks, 1995)."""

from __future__ import annotations

from streamtrain.compute.builder import EVALUATE, Builder, Value
from streamtrain.compute.input import InputShape
from streamtrain.compute.losses._binary import label_and_weight, learn
from streamtrain.compute.options import Option
from streamtrain.compute.spec import Ref

HELP = "a 0/1 label; predicts a margin, above 0 for 1"
PREDICTION = "z"   # the outputs of the last layer
OPTIONS: dict[str, Option] = {}
LABEL = "binary"
EXAMPLES: tuple[dict[str, object], ...] = ({},)


def outputs(shape: InputShape) -> int:
    return 1


def build(builder: Builder, shape: InputShape, z: Value) -> tuple[Ref, Ref]:
    """Adds loss, gradient and scores; returns the gradient of z and the predictions, z itself. The model begins at 0,
    the constant prediction is 1 or -1 by the heavier class. Figures take a margin for a logit."""
    rows = builder.rows
    seen = builder.statistic("label.classes", "statistics", "sum", 2)

    def minimised(z: Ref, p: Ref, plain: Ref, dz: Ref, loss: Ref) -> None:
        builder.call("hinge", rows, z, *label_and_weight(builder), builder.step, dz, loss)

    def constant(z: Ref) -> None:
        builder.call("running_margin", rows, *label_and_weight(builder), *seen, z)

    with builder.during(*EVALUATE):
        dz = learn(builder, z.ref, builder.buffer("probability", rows, 1), seen, constant, minimised)
    return dz, z.ref
