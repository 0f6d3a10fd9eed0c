"""LAMB (You et al.: Large batch optimization for deep learning, 2020). Each parameter is a layer of the paper's; of a
table, of which a step touches few rows, there is no such ratio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from streamtrain.compute.optimizers import adam
from streamtrain.compute.optimizers._common import COMMON
from streamtrain.compute.options import Option

HELP = "Adam whose step is as long as the parameter, by layer"
RATE = 1e-3
PER_PARAMETER = True   # its formula needs to know where each begins
FOLDED = ("weight_decay",)   # the formula has them itself
OPTIONS: dict[str, Option] = {
    **adam.OPTIONS, "epsilon": replace(adam.OPTIONS["epsilon"], default=1e-6),
    "weight_decay": replace(COMMON["weight_decay"], default=0.01, help="times p, part of the step"),
}


def state(options: Mapping[str, float]) -> tuple[str, ...]:
    return adam.state(options)


def factors(options: Mapping[str, float]) -> tuple[float, ...]:
    return *adam.factors(options), options["weight_decay"]


def op(options: Mapping[str, float]) -> str:
    return "lamb"
