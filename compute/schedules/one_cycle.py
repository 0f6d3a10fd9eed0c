"""One cycle up and down (Smith, Topin: Super-convergence, 2018), along cosines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamtrain.compute.options import Number, Option, Whole
from streamtrain.compute.schedules import MAX_STEPS
from streamtrain.compute.schedules._exact import cosine

HELP = "up to the rate and down to almost nothing, once"
OPTIONS: dict[str, Option] = {
    "steps": Whole(least=2, most=MAX_STEPS, default=10_000, help="steps of the cycle"),
    "up": Number(above=0, below=1, default=0.3, help="share of them on the way up"),
    "start": Number(above=0, most=1, default=0.04, help="share of the rate it begins with"),
    "end": Number(least=0, most=1, default=4e-6, help="share of the rate it ends with, and stays at"),
}


def factor(options: Mapping[str, Any], step: int) -> float:
    last, top = options["steps"] - 1, options["up"] * options["steps"] - 1
    if step <= top and top > 0:
        return _between(options["start"], 1.0, step / top)
    return _between(1.0, options["end"], min(1.0, (step - top) / (last - top)))


def _between(first: float, then: float, way: float) -> float:
    return then + (first - then) * (1.0 + cosine(way)) / 2
