"""Gradient descent with momentum (Polyak, 1964)."""

from __future__ import annotations

from streamtrain.compute.ops._update import update
from streamtrain.compute.spec import Array

HELP = "u = momentum u + g, step against u"


def formula(rate: float, number: int, g: Array, p: Array, u: Array, momentum: float) -> tuple[Array, ...]:
    speed = momentum * u + g
    return p - rate * speed, speed


OPS = update("momentum", formula, ("u",), {"momentum": 0.9})
