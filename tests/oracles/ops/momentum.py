"""The oracle of compute/ops/momentum.py."""

from __future__ import annotations

from streamtrain.compute.spec import Array
from tests.oracles.ops._update import update


def formula(rate: float, number: int, g: Array, p: Array, u: Array, momentum: float) -> tuple[Array, ...]:
    speed = momentum * u + g
    return p - rate * speed, speed


ORACLES = {
    **update("momentum", formula, ("u",), {"momentum": 0.9}),
}
