"""A rate that falls by the same share at every step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamtrain.compute.options import Number, Option, Whole
from streamtrain.compute.schedules import MAX_STEPS
from streamtrain.compute.schedules._exact import power

HELP = "gamma^(step / steps)"
OPTIONS: dict[str, Option] = {
    "gamma": Number(above=0, most=1, default=0.5, help="what is left of the rate after `steps` steps"),
    "steps": Whole(least=1, most=MAX_STEPS, default=10_000, help="steps"),
}


def factor(options: Mapping[str, Any], step: int) -> float:
    return power(options["gamma"], step / options["steps"])
