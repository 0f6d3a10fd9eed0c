"""He, Zhang, Ren, Sun: Delving deep into rectifiers, 2015."""

from __future__ import annotations

import math

from streamtrain.compute.start import Start

HELP = "uniform, of variance 2 / inputs"


def start(inputs: int, outputs: int) -> Start:
    return Start.uniform(math.sqrt(6 / inputs))
