"""AdamW (Loshchilov, Hutter: Decoupled weight decay regularization, 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from streamtrain.compute.optimizers import adam
from streamtrain.compute.optimizers._common import COMMON
from streamtrain.compute.options import Option

HELP = "Adam with a weight decay beside the loss"
RATE = 1e-3
OPTIONS: dict[str, Option] = {
    **adam.OPTIONS, "weight_decay": replace(COMMON["weight_decay"], default=0.01),
}


def state(options: Mapping[str, float]) -> tuple[str, ...]:
    return adam.state(options)


def factors(options: Mapping[str, float]) -> tuple[float, ...]:
    return adam.factors(options)


def op(options: Mapping[str, float]) -> str:
    return "adam"
