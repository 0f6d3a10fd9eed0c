"""The oracle of compute/ops/nesterov.py."""

from __future__ import annotations

from streamtrain.compute.spec import Array
from tests.oracles.ops._update import update


def formula(rate: float, number: int, g: Array, p: Array, u: Array, momentum: float) -> tuple[Array, ...]:
    speed = momentum * u + g
    return p - rate * (g + momentum * speed), speed


ORACLES = {
    **update("nesterov", formula, ("u",), {"momentum": 0.9}),
}
