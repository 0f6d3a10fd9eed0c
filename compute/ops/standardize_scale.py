"""Mean and scale of the standardised columns from their moments."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array, Op, given, out, size

HELP = "mean and 1 / standard deviation of columns from their moments"


def reference(columns: int, moments: Array, chosen: Array, mean: Array, scale: Array) -> None:
    count, centre, squares = moments[:, 0], moments[:, 1], moments[:, 2]
    known = (chosen != 0) & (count > 0)
    mean[:] = np.where(known, centre, 0)
    varied = known & (squares > 0)
    scale[:] = np.sqrt(np.divide(count, squares, out=np.ones_like(count), where=varied))


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    moments = np.stack([rng.integers(0, 3, n) * 10.0, rng.normal(0, 100, n), rng.integers(0, 3, n) * rng.random(n)], 1)
    return {"columns": n, "moments": moments, "chosen": rng.integers(0, 2, n)}


OPS = (
    Op(
        "standardize_scale",
        (size("columns"), given("moments", "f64", "columns", 3), given("chosen", "u8", "columns"),
         out("mean", "f32", "columns"), out("scale", "f32", "columns")),
        reference, example, each=("columns",),
    ),
)
