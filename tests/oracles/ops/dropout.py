"""The oracle of compute/ops/dropout.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import step
from tests.oracles.ops.uniform import philox

_LANES = 16   # counters whose words lie together: first all first ones, and so on


def reference(n: int, before: int, step: _native.StepBlock, stream: int, rate: float, y: Array, x: Array) -> None:
    blocks = -(-n // (4 * _LANES))
    words = philox(step.random, before // 4 + np.arange(blocks * _LANES), stream).reshape(blocks, _LANES, 4)
    drawn = (words.transpose(0, 2, 1).reshape(-1)[:n] >> np.uint64(8)) * 2.0**-24
    y[:] = np.where(drawn >= np.float32(rate), x / (1 - rate), 0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    given = step(random=0x1234567887654321)
    return {"n": n, "before": 640, "step": given, "stream": 3, "rate": 0.3, "x": rng.normal(size=n)}


ORACLES = {
    "dropout": Oracle(reference, example),
}
