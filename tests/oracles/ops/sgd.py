"""The oracle of compute/ops/sgd.py."""

from __future__ import annotations

from streamtrain.compute.spec import Array
from tests.oracles.ops._update import update


def formula(rate: float, number: int, g: Array, p: Array) -> tuple[Array, ...]:
    return (p - rate * g,)


ORACLES = {
    **update("sgd", formula, (), {}),
}
