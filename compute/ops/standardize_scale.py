"""Mean, scale and limits of the standardised columns from their moments."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.moments import MOMENTS, deviation, named, reach
from streamtrain.compute.moments import example as example_moments
from streamtrain.compute.spec import TEMPLATE_TYPES, Array, Op, given, out, size

HELP = "mean, 1 / standard deviation, clip and limits of columns from their moments"


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


OPS = (
    Op(
        "standardize_scale",
        (size("columns"), given("moments", "f64", "columns", len(MOMENTS)), given("chosen", "u8", "columns"),
         out("mean", "T", "columns"), out("scale", "f32", "columns"), out("clip", "f32", "columns"),
         out("low", "T", "columns"), out("high", "T", "columns")),
        reference, example, each=("columns",), types=tuple(TEMPLATE_TYPES),
    ),
)
