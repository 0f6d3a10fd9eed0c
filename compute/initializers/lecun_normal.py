"""LeCun, Bottou, Orr, Müller: Efficient backprop, 1998."""

from __future__ import annotations

import math

from streamtrain.compute.start import Start

HELP = "normal, of variance 1 / inputs"


def start(inputs: int, outputs: int) -> Start:
    return Start.normal(math.sqrt(1 / inputs))
