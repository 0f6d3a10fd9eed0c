"""Stochastic gradient descent, without state."""

from __future__ import annotations

from streamtrain.compute.builder import Builder, Table
from streamtrain.compute.optimizers._rows import touched
from streamtrain.compute.spec import Ref

HELP = "p -= learning_rate g"
DEFAULTS: dict[str, float] = {}
STATE: tuple[str, ...] = ()


def betas(options: dict[str, float]) -> tuple[float, float]:
    return 0.0, 0.0


def update(builder: Builder, options: dict[str, float], count: int, gradient: Ref, parameter: Ref) -> None:
    builder.call("sgd", count, builder.step, gradient, parameter)


def update_rows(builder: Builder, options: dict[str, float], table: Table) -> None:
    builder.call("sgd_rows", *touched(builder, table))
