"""Nesterov's accelerated gradient (Sutskever et al.: 2013)."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.compute.options import Number, Option

HELP = "u = momentum u + g, p -= learning_rate (g + momentum u)"
RATE = 1e-2
OPTIONS: dict[str, Option] = {"momentum": Number(least=0, default=0.9, help="share of u that stays, a step")}


def state(options: Mapping[str, float]) -> tuple[str, ...]:
    return ("u",)


def factors(options: Mapping[str, float]) -> tuple[float, ...]:
    return (options["momentum"],)


def op(options: Mapping[str, float]) -> str:
    return "nesterov"
