"""The common oracles of activations: an elementwise y = forward(x) with dx = dy * slope(x, y), in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def activation(
    name: str, forward: Callable[[Array], Array], slope: Callable[[Array, Array], Array]
) -> dict[str, Oracle]:
    def reference(n: int, y: Array, x: Array) -> None:
        y[:] = forward(x.astype(np.float64))

    def reference_gradient(n: int, dx: Array, dy: Array, x: Array, y: Array) -> None:
        dx[:] = dy * slope(x.astype(np.float64), y.astype(np.float64))

    def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
        x = rng.normal(0, 4, n)
        return {"n": n, "x": x, "y": forward(x), "dy": rng.normal(size=n)}

    return {f"{name}_forward": Oracle(reference, example), f"{name}_gradient": Oracle(reference_gradient, example)}
