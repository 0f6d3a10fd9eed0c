"""y = x / root mean square scale, row by row (Zhang, Sennrich: Root mean square layer normalization, 2019)."""

from __future__ import annotations

from streamtrain.compute.builder import Builder, Value
from streamtrain.compute.layers import _row_norm
from streamtrain.compute.shape import alike

HELP = "rows of mean square 1, by a learned scale of each column"
OPTIONS = _row_norm.OPTIONS
EXAMPLES = ({"epsilon": 1e-5},)
shape = alike


def build(builder: Builder, name: str, x: Value, epsilon: float, activation: str) -> Value:
    return _row_norm.build(builder, name, x, False, epsilon, activation)
