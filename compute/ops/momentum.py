"""Gradient descent with momentum (Polyak, 1964)."""

from __future__ import annotations

from typing import Any

from streamtrain.compute.ops._update import update
from streamtrain.compute.spec import Array

HELP = "u = momentum u + g, p -= learning_rate u"


def formula(step: Any, g: Array, p: Array, u: Array, factor: float) -> tuple[Array, ...]:
    speed = factor * u + g
    return p - step.learning_rate * speed, speed


OPS = update("momentum", formula, ("u",), {"factor": 0.9})
