"""NAdam (Dozat: Incorporating Nesterov momentum into Adam, 2016)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal  # its power is the same everywhere

from streamtrain.compute.optimizers import adam
from streamtrain.compute.options import Number, Option

HELP = "Adam with Nesterov's momentum"
RATE = 2e-3
OPTIONS: dict[str, Option] = {
    **adam.OPTIONS,
    "momentum_decay": Number(least=0, most=1, default=4e-3, help="how soon the momentum is beta1, from half of it on"),
}


def state(options: Mapping[str, float]) -> tuple[str, ...]:
    return adam.state(options)


def factors(options: Mapping[str, float]) -> tuple[float, ...]:
    return *adam.factors(options), float(Decimal("0.96") ** Decimal(options["momentum_decay"]))


def op(options: Mapping[str, float]) -> str:
    return "nadam"
