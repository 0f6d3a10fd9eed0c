"""A rate that falls to its end in so many steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamtrain.compute.options import Number, Option, Whole
from streamtrain.compute.schedules import MAX_STEPS
from streamtrain.compute.schedules._exact import power

HELP = "(1 - step / steps)^power from 1 down to end"
OPTIONS: dict[str, Option] = {
    "steps": Whole(least=1, most=MAX_STEPS, default=10_000, help="steps until the end"),
    "power": Number(above=0, most=16, default=1.0, help="1: in a line"),
    "end": Number(least=0, most=1, default=0.0, help="what is left of the rate, and stays"),
}


def factor(options: Mapping[str, Any], step: int) -> float:
    left = 1.0 - min(step, options["steps"]) / options["steps"]
    return float(options["end"] + (1.0 - options["end"]) * power(left, options["power"]))
