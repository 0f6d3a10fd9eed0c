"""Stochastic gradient descent, without state; with a momentum it does as momentum.py does."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.compute.options import Number, Option

HELP = "p -= learning_rate g"
RATE = 1e-2
OPTIONS: dict[str, Option] = {
    "momentum": Number(least=0, default=0.0, help="above 0: steps by u = momentum u + g; more state")
}


def state(options: Mapping[str, float]) -> tuple[str, ...]:
    return ("u",) if options["momentum"] else ()


def factors(options: Mapping[str, float]) -> tuple[float, ...]:
    return (options["momentum"],) if options["momentum"] else ()


def op(options: Mapping[str, float]) -> str:
    return "momentum" if options["momentum"] else "sgd"
