"""ADADELTA (Zeiler: An adaptive learning rate method, 2012)."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.compute.options import Number, Option

HELP = "steps by g, in the unit of earlier steps"
RATE = 1.0
OPTIONS: dict[str, Option] = {
    "rho": Number(least=0, below=1, default=0.9, help="share of the running means that stays, a step"),
    "epsilon": Number(above=0, default=1e-6, help="added to both means"),
}


def state(options: Mapping[str, float]) -> tuple[str, ...]:
    return ("v", "u")


def factors(options: Mapping[str, float]) -> tuple[float, ...]:
    return options["rho"], options["epsilon"]


def op(options: Mapping[str, float]) -> str:
    return "adadelta"
