"""y = (x - mean) / deviation scale + shift, row by row (Ba, Kiros, Hinton: Layer normalization, 2016)."""

from __future__ import annotations

from streamtrain.compute.builder import Builder, Value
from streamtrain.compute.layers import _row_norm
from streamtrain.compute.shape import alike

HELP = "rows of mean 0 and variance 1, by a learned scale and shift of each column"
OPTIONS = _row_norm.OPTIONS
EXAMPLES = ({"epsilon": 1e-5},)
shape = alike


def build(builder: Builder, name: str, x: Value, epsilon: float, activation: str) -> Value:
    return _row_norm.build(builder, name, x, True, epsilon, activation)
