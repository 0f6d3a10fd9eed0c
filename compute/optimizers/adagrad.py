"""AdaGrad (Duchi, Hazan, Singer: Adaptive subgradient methods, 2011)."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.compute.options import Number, Option

HELP = "steps by g over the root of the sum of g^2"
RATE = 1e-2
OPTIONS: dict[str, Option] = {
    "initial_accumulator": Number(least=0, default=0.0, help="what the sum of g^2 begins with"),
    "epsilon": Number(least=0, default=1e-10, help="added to the root of the sum of g^2"),
}


def state(options: Mapping[str, float]) -> tuple[str, ...]:
    return ("n",)


def factors(options: Mapping[str, float]) -> tuple[float, ...]:
    return options["initial_accumulator"], options["epsilon"]


def op(options: Mapping[str, float]) -> str:
    return "adagrad"
