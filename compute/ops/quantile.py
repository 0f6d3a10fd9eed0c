"""Loss of a quantile of a number, the pinball loss."""

from __future__ import annotations

from streamtrain.compute.ops._number import number_op

HELP = "error of a quantile of a number"

OPS = (number_op("quantile", "at"),)
