"""RMSProp (Tieleman, Hinton: Neural networks for machine learning, lecture 6.5, 2012)."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.compute.options import Number, Option

HELP = "steps by g over the root of the running mean of g^2"
RATE = 1e-3
OPTIONS: dict[str, Option] = {
    "alpha": Number(least=0, below=1, default=0.99, help="share of the running mean of g^2 that stays, a step"),
    "epsilon": Number(least=0, default=1e-8, help="added to the root of the mean of g^2"),
}


def state(options: Mapping[str, float]) -> tuple[str, ...]:
    return ("v",)


def factors(options: Mapping[str, float]) -> tuple[float, ...]:
    return options["alpha"], options["epsilon"]


def op(options: Mapping[str, float]) -> str:
    return "rmsprop"
