"""LeCun, Bottou, Orr, Müller: Efficient backprop, 1998."""

from __future__ import annotations

from streamtrain.compute.ops.activation import lecun
from streamtrain.compute.start import Start

HELP = "uniform, of variance 1 / inputs"


def start(inputs: int, outputs: int) -> Start:
    return Start.uniform(lecun(inputs, outputs))
