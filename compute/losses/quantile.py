"""Loss of a quantile of a number, the pinball loss (Koenker, Bassett: Regression quantiles, 1978)."""

from __future__ import annotations

from streamtrain.compute.builder import Builder, Value
from streamtrain.compute.input import InputShape
from streamtrain.compute.losses._number import PREDICTION, build_number
from streamtrain.compute.options import Number, Option
from streamtrain.compute.spec import Ref

__all__ = ["PREDICTION"]

HELP = "a label that is a number; predicts what a share of labels lies below"
OPTIONS: dict[str, Option] = {
    "at": Number(above=0, below=1, default=0.5, help="the share of labels below the prediction; 0.5 is the median"),
}
LABEL = "number"
EXAMPLES: tuple[dict[str, object], ...] = ({}, {"standardize_label": True, "settings": {"at": 0.9}})


def outputs(shape: InputShape) -> int:
    return 1


def build(builder: Builder, shape: InputShape, z: Value, at: float) -> tuple[Ref, Ref]:
    """Adds loss, gradient, scores and prediction; returns the gradient of z and the predictions."""
    return build_number(builder, shape, z, "quantile", at, degree=1)
