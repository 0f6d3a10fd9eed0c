"""Elements left out by chance, by the step's random key. The same call of dy gives dx."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute.ops._batch import step
from streamtrain.compute.ops.uniform import philox
from streamtrain.compute.spec import Array, Op, given, out, size, step_known, value

HELP = "a share of the elements becomes 0, the others grow by as much; which, the step's random key says"
_LANES = 16   # counters whose words lie together: first all first ones, and so on


def reference(n: int, before: int, step: _native.StepBlock, stream: int, rate: float, y: Array, x: Array) -> None:
    blocks = -(-n // (4 * _LANES))
    words = philox(step.random, before // 4 + np.arange(blocks * _LANES), stream).reshape(blocks, _LANES, 4)
    drawn = (words.transpose(0, 2, 1).reshape(-1)[:n] >> np.uint64(8)) * 2.0**-24
    y[:] = np.where(drawn >= np.float32(rate), x / (1 - rate), 0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    given = step(random=0x1234567887654321)
    return {"n": n, "before": 640, "step": given, "stream": 3, "rate": 0.3, "x": rng.normal(size=n)}


OPS = (
    Op("dropout",
       (size("n"), size("before"), step_known(), value("stream", "u64"), value("rate"), out("y", "f32", "n"),
        given("x", "f32", "n")),
       reference, example, each=("n",), tiles="rows"),
)
