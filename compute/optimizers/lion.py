"""Lion (Chen et al.: Symbolic discovery of optimization algorithms, 2023)."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.compute.options import Number, Option

HELP = "steps by the sign of a running mean of g"
RATE = 1e-4
OPTIONS: dict[str, Option] = {
    "beta1": Number(least=0, below=1, default=0.9, help="share of the running mean of g in the step's sign"),
    "beta2": Number(least=0, below=1, default=0.99, help="share of the running mean of g that stays, a step"),
}


def state(options: Mapping[str, float]) -> tuple[str, ...]:
    return ("m",)


def factors(options: Mapping[str, float]) -> tuple[float, ...]:
    return options["beta1"], options["beta2"]


def op(options: Mapping[str, float]) -> str:
    return "lion"
