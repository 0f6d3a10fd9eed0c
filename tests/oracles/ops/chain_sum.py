"""The oracle of compute/ops/chain_sum.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle

ONLY, FIRST, NEXT, LAST = range(4)   # the turns


def reference(n: int, turn: int, part: Array, total: Array, sum: Array) -> None:
    so_far = part + (0 if turn == FIRST else total)
    if turn == LAST:
        sum[:] = so_far
    elif turn != ONLY:
        total[:] = so_far


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "turn": n % 4, "part": rng.normal(size=n), "total": rng.normal(size=n),
            "sum": rng.normal(size=n)}


ORACLES = {
    "chain_sum": Oracle(reference, example),
}
