"""Glorot, Bengio: Understanding the difficulty of training deep feedforward neural networks, 2010."""

from __future__ import annotations

import math

from streamtrain.compute.start import Start

HELP = "uniform, of variance 2 / (inputs + outputs)"


def start(inputs: int, outputs: int) -> Start:
    return Start.uniform(math.sqrt(6 / (inputs + outputs)))
