"""AdaMax (Kingma, Ba: Adam, 2015, section 7.1)."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.compute.options import Number, Option

HELP = "Adam by the largest |g|, which fades"
RATE = 2e-3
OPTIONS: dict[str, Option] = {
    "beta1": Number(least=0, below=1, default=0.9, help="share of the running mean of g that stays, a step"),
    "beta2": Number(least=0, below=1, default=0.999, help="share of the largest |g| that stays, a step"),
    "epsilon": Number(above=0, default=1e-8, help="added to |g|"),
}


def state(options: Mapping[str, float]) -> tuple[str, ...]:
    return ("m", "u")


def factors(options: Mapping[str, float]) -> tuple[float, ...]:
    return options["beta1"], options["beta2"], options["epsilon"]


def op(options: Mapping[str, float]) -> str:
    return "adamax"
