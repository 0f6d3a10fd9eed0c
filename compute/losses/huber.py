"""Huber loss of a number (Huber: Robust estimation of a location parameter, 1964)."""

from __future__ import annotations

from streamtrain.compute.builder import Builder, Value
from streamtrain.compute.input import InputShape
from streamtrain.compute.losses._number import PREDICTION, build_number
from streamtrain.compute.options import Number, Option
from streamtrain.compute.spec import Ref

__all__ = ["PREDICTION"]

HELP = "a label that is a number, by a square that goes on as a line beyond delta, so that outliers pull little"
OPTIONS: dict[str, Option] = {
    "delta": Number(
        above=0, default=1.0, help="the error from which on the loss is a line; in deviations where the label is "
        "standardised"
    ),
}
LABEL = "number"
EXAMPLES: tuple[dict[str, object], ...] = ({}, {"standardize_label": True, "settings": {"delta": 0.5}})


def outputs(shape: InputShape) -> int:
    return 1


def build(builder: Builder, shape: InputShape, z: Value, delta: float) -> tuple[Ref, Ref]:
    """Adds loss, gradient, scores and prediction; returns the gradient of z and the predictions."""
    return build_number(builder, shape, z, "huber", delta)
