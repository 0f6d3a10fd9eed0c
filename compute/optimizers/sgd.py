"""Stochastic gradient descent, without state; with a momentum it does as momentum.py does."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.compute.builder import Builder, Table
from streamtrain.compute.optimizers import momentum
from streamtrain.compute.optimizers._rows import touched
from streamtrain.compute.options import Number, Option
from streamtrain.compute.spec import Ref

HELP = "p -= learning_rate g"
OPTIONS: dict[str, Option] = {
    "momentum": Number(least=0, default=0.0, help="above 0: steps by u = momentum u + g; more state")
}


def state(options: Mapping[str, float]) -> tuple[str, ...]:
    return momentum.state(options) if options["momentum"] else ()


def betas(options: Mapping[str, float]) -> tuple[float, float]:
    return 0.0, 0.0


def update(builder: Builder, options: Mapping[str, float], count: int, gradient: Ref, parameter: Ref, *u: Ref) -> None:
    if u:
        momentum.update(builder, options, count, gradient, parameter, *u)
    else:
        builder.call("sgd", count, builder.step, gradient, parameter)


def update_rows(builder: Builder, options: Mapping[str, float], table: Table, *u: Ref) -> None:
    if u:
        momentum.update_rows(builder, options, table, *u)
    else:
        builder.call("sgd_rows", *touched(builder, table))
