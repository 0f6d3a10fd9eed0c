"""Huber loss of a number: a square that goes on as a line."""

from __future__ import annotations

from streamtrain.compute.ops._number import number_op

HELP = "square of a small error, a line beyond delta"

OPS = (number_op("huber", "delta"),)
