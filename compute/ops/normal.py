"""About normal numbers parameters start from: sums of twelve uniform ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops.uniform import philox
from streamtrain.compute.spec import Array, Op, out, size, value

HELP = "about normal random numbers from Philox, the same on every machine"


def reference(n: int, x: Array, seed: int, stream: int, mean: float, deviation: float) -> None:
    words = philox(seed, np.arange(3 * n), stream).reshape(n, 12) >> np.uint64(8)
    x[:] = (words.sum(1).astype(np.float64) * 2.0**-24 - 6) * deviation + mean


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "seed": 0x1234567887654321, "stream": 7, "mean": -0.25, "deviation": 0.5}


OPS = (
    Op(
        "normal_fill",
        (size("n"), out("x", "f32", "n"), value("seed", "u64"), value("stream", "u64"), value("mean"),
         value("deviation")),
        reference, example, each=("n",),
    ),
)
