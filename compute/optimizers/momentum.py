"""Gradient descent with momentum (Polyak, 1964)."""

from __future__ import annotations

from streamtrain.compute.builder import Builder, Table
from streamtrain.compute.optimizers._rows import touched
from streamtrain.compute.spec import Ref

HELP = "u = momentum u + g, p -= learning_rate u"
DEFAULTS: dict[str, float] = {"momentum": 0.9}
STATE: tuple[str, ...] = ("u",)


def betas(options: dict[str, float]) -> tuple[float, float]:
    return 0.0, 0.0


def update(builder: Builder, options: dict[str, float], count: int, gradient: Ref, parameter: Ref, u: Ref) -> None:
    builder.call("momentum", count, builder.step, gradient, parameter, u, options["momentum"])


def update_rows(builder: Builder, options: dict[str, float], table: Table, u: Ref) -> None:
    builder.call("momentum_rows", *touched(builder, table), u, options["momentum"])
