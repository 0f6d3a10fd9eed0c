"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from streamtrain.compute.ops._update import update
from streamtrain.compute.spec import Array

HELP = "p -= learning_rate g"


def formula(step: Any, g: Array, p: Array) -> tuple[Array, ...]:
    return (p - step.learning_rate * g,)


OPS = update("sgd", formula, (), {})
