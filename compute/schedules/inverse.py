"""A rate that falls with a power of the steps (Robbins, Monro: A stochastic approximation method, 1951: above 1/2, at
most 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamtrain.compute.options import Number, Option
from streamtrain.compute.schedules._exact import power

HELP = "1 / (1 + gamma step)^power"
OPTIONS: dict[str, Option] = {
    "gamma": Number(least=0, default=1e-4, help="how soon it falls"),
    "power": Number(above=0, most=4, default=1.0, help="how far it falls"),
}


def factor(options: Mapping[str, Any], step: int) -> float:
    return power(1.0 + options["gamma"] * step, -options["power"])
