"""Squared error of a number; a standardised label is put back into its own unit at prediction."""

from __future__ import annotations

from streamtrain.compute.builder import Builder, Value
from streamtrain.compute.input import InputShape
from streamtrain.compute.losses._number import PREDICTION, build_number
from streamtrain.compute.options import Option
from streamtrain.compute.spec import Ref

__all__ = ["PREDICTION"]

HELP = "a label that is a number; predicts it"
OPTIONS: dict[str, Option] = {}
LABEL = "number"
EXAMPLES: tuple[dict[str, object], ...] = ({}, {"standardize_label": True})


def outputs(shape: InputShape) -> int:
    return 1


def build(builder: Builder, shape: InputShape, z: Value) -> tuple[Ref, Ref]:
    """Adds loss, gradient, scores and prediction; returns the gradient of z and the predictions."""
    return build_number(builder, shape, z, "mean_squared_error")
