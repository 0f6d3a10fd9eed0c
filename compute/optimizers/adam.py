"""Adam (Kingma, Ba: 2015)."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.compute.options import Number, Option

HELP = "steps by the ratio of the running means of g and g^2"
RATE = 1e-3
OPTIONS: dict[str, Option] = {
    "beta1": Number(least=0, below=1, default=0.9, help="share of the running mean of g that stays, a step"),
    "beta2": Number(least=0, below=1, default=0.999, help="the same of g^2"),
    "epsilon": Number(least=0, default=1e-8, help="added to the root of the mean of g^2"),
}


def state(options: Mapping[str, float]) -> tuple[str, ...]:
    return ("m", "v")


def factors(options: Mapping[str, float]) -> tuple[float, ...]:
    return options["beta1"], options["beta2"], options["epsilon"]


def op(options: Mapping[str, float]) -> str:
    return "adam"
