"""Absolute error of a number."""

from __future__ import annotations

from streamtrain.compute.ops._number import number_op

HELP = "absolute error of a number"

OPS = (number_op("mean_absolute_error"),)
