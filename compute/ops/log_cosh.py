"""Log-cosh loss of a number."""

from __future__ import annotations

from streamtrain.compute.ops._number import number_op

HELP = "log cosh of the error of a number"

OPS = (number_op("log_cosh"),)
