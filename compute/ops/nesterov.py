"""Nesterov's accelerated gradient (Sutskever et al., 2013)."""

from __future__ import annotations

from streamtrain.compute.ops._update import update
from streamtrain.compute.spec import Array

HELP = "u = momentum u + g, step against g + momentum u"


def formula(rate: float, number: int, g: Array, p: Array, u: Array, momentum: float) -> tuple[Array, ...]:
    speed = momentum * u + g
    return p - rate * (g + momentum * speed), speed


OPS = update("nesterov", formula, ("u",), {"momentum": 0.9})
