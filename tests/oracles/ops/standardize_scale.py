"""The oracle of compute/ops/standardize_scale.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.moments import named
from streamtrain.compute.spec import Array
from tests.oracles.moments import deviation, reach
from tests.oracles.moments import example as example_moments
from tests.oracles.ops import Oracle


def reference(
    columns: int, moments: Array, chosen: Array, mean: Array, scale: Array, clip: Array, low: Array, high: Array
) -> None:
    of, spread = named(moments), deviation(moments)
    known, varies = (chosen != 0) & (of["count"] > 0), (spread > 0) & (spread >= of["floor"])
    away = np.where(known, reach(moments), np.inf)
    mean[:] = np.where(known, of["mean"], 0)
    scale[:] = np.divide(1, spread, out=np.ones_like(spread), where=known & varies)
    clip[:] = np.where(known & (of["clip"] > 0), of["clip"], np.inf)
    low[:], high[:] = of["mean"] - away, of["mean"] + away


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"columns": n, "moments": example_moments(rng, n), "chosen": rng.integers(0, 2, n)}


ORACLES = {
    "standardize_scale": Oracle(reference, example),
}
