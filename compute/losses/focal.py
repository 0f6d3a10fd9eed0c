"""Focal loss of a 0/1 label (Lin, Goyal, Girshick, He, Dollár: Focal loss for dense object detection, 2017)."""

from __future__ import annotations

from streamtrain.compute.builder import EVALUATE, PREDICT, Builder, Value
from streamtrain.compute.input import InputShape
from streamtrain.compute.losses._binary import constant_odds, label_and_weight, learn
from streamtrain.compute.losses._scores import classes_block
from streamtrain.compute.options import Number, Option
from streamtrain.compute.spec import Ref

HELP = "a 0/1 label that is rare; predicts a probability, rows that are right already count little"
# z: the outputs of the last layer; n: the weights in label.classes; b: balance
PREDICTION = "1 / (1 + exp(-z - log(b (n[1] + 0.5) / ((1 - b) (n[0] + 0.5)))))"
OPTIONS: dict[str, Option] = {
    "gamma": Number(least=0, most=100, default=2.0, help="power of the probability missing from the label; 0: cross "
                    "entropy"),
    "balance": Number(above=0, below=1, default=0.5, help="what a row of label 1 is multiplied by; one of label 0 by 1 "
                      "less this"),
}
LABEL = "binary"
EXAMPLES: tuple[dict[str, object], ...] = ({}, {"settings": {"gamma": 0.5, "balance": 0.8}})


def outputs(shape: InputShape) -> int:
    return 1


def build(builder: Builder, shape: InputShape, z: Value, gamma: float, balance: float) -> tuple[Ref, Ref]:
    """Adds loss, gradient, scores and prediction; returns the gradient of z and the predictions. The model begins at
    the classes' shares times their balance, which are the constant prediction too: the best one where gamma is 0."""
    rows = builder.rows
    p = builder.buffer("prediction", rows, 1)
    prior = classes_block(builder, 2, z.ref, [1 - balance, balance])
    with builder.during(*PREDICT):
        builder.call("sigmoid_forward", rows, p, z.ref, types="float")

    def minimised(z: Ref, p: Ref, plain: Ref, dz: Ref, loss: Ref) -> None:
        builder.call("focal", rows, gamma, balance, z, *label_and_weight(builder), builder.step, dz, loss)

    with builder.during(*EVALUATE):
        dz = learn(builder, z.ref, p, prior.seen, constant_odds(builder, prior), minimised)
    return dz, p
