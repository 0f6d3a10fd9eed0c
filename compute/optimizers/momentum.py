"""Gradient descent with momentum (Polyak, 1964)."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.compute.builder import Builder, Table
from streamtrain.compute.optimizers._rows import touched
from streamtrain.compute.options import Number, Option
from streamtrain.compute.spec import Ref

HELP = "u = momentum u + g, p -= learning_rate u"
OPTIONS: dict[str, Option] = {"momentum": Number(least=0, default=0.9, help="share of u that stays, a step")}


def state(options: Mapping[str, float]) -> tuple[str, ...]:
    return ("u",)


def betas(options: Mapping[str, float]) -> tuple[float, float]:
    return 0.0, 0.0


def update(builder: Builder, options: Mapping[str, float], count: int, gradient: Ref, parameter: Ref, u: Ref) -> None:
    builder.call("momentum", count, builder.step, gradient, parameter, u, options["momentum"])


def update_rows(builder: Builder, options: Mapping[str, float], table: Table, u: Ref) -> None:
    builder.call("momentum_rows", *touched(builder, table), u, options["momentum"])
