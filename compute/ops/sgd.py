"""Stochastic gradient descent."""

from __future__ import annotations

from streamtrain.compute.ops._update import update
from streamtrain.compute.spec import Array

HELP = "step against the gradient"


def formula(rate: float, number: int, g: Array, p: Array) -> tuple[Array, ...]:
    return (p - rate * g,)


OPS = update("sgd", formula, (), {})
