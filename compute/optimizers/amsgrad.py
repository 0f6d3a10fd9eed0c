"""AMSGrad (Reddi, Kale, Kumar: On the convergence of Adam and beyond, 2018)."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.compute.optimizers import adam
from streamtrain.compute.options import Option

HELP = "Adam by the largest running mean of g^2 so far"
RATE = 1e-3
OPTIONS: dict[str, Option] = adam.OPTIONS


def state(options: Mapping[str, float]) -> tuple[str, ...]:
    return ("m", "v", "most")


def factors(options: Mapping[str, float]) -> tuple[float, ...]:
    return adam.factors(options)


def op(options: Mapping[str, float]) -> str:
    return "amsgrad"
