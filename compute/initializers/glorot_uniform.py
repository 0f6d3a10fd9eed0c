"""Glorot, Bengio: Understanding the difficulty of training deep feedforward neural networks, 2010."""

from __future__ import annotations

from streamtrain.compute.ops.activation import glorot
from streamtrain.compute.start import Start

HELP = "uniform, of variance 2 / (inputs + outputs)"


def start(inputs: int, outputs: int) -> Start:
    return Start.uniform(glorot(inputs, outputs))
