"""He, Zhang, Ren, Sun: Delving deep into rectifiers, 2015."""

from __future__ import annotations

from streamtrain.compute.ops.activation import he
from streamtrain.compute.start import Start

HELP = "uniform, of variance 2 / inputs"


def start(inputs: int, outputs: int) -> Start:
    return Start.uniform(he(inputs, outputs))
