"""A rate that falls along half a cosine, again and again where restarts are wanted (Loshchilov, Hutter: SGDR, 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamtrain.compute.options import Flag, Number, Option, Whole
from streamtrain.compute.schedules import MAX_STEPS
from streamtrain.compute.schedules._exact import cosine

HELP = "half a cosine from 1 down to end, with restarts"
OPTIONS: dict[str, Option] = {
    "steps": Whole(least=1, most=MAX_STEPS, default=10_000, help="steps of the first fall"),
    "end": Number(least=0, most=1, default=0.0, help="what is left of the rate at its end"),
    "restarts": Flag(default=False, help="begin again; without, the rate stays at its end"),
    "growth": Whole(least=1, most=64, default=1, help="how many times as long as the one before each fall is"),
}


def factor(options: Mapping[str, Any], step: int) -> float:
    length: int = options["steps"]
    while options["restarts"] and step >= length:
        falls = step // length if options["growth"] == 1 else 1
        step, length = step - falls * length, length * options["growth"]
    way = min(step, length) / length
    return float(options["end"] + (1.0 - options["end"]) * (1.0 + cosine(way)) / 2)
