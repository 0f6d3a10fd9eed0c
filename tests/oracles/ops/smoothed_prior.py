"""The oracle of compute/ops/smoothed_prior.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def reference(
    outputs: int, classes: int, smoothing: float, seen: Array, class_weight: Array, offset: Array
) -> None:
    counts = (seen + 0.5) * class_weight
    share = (1 - smoothing) * counts / counts.sum() + smoothing / classes
    offset[:] = np.log(share[1] / share[0]) if outputs == 1 else np.log(share)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    classes = 2 if n % 3 == 0 else 2 + n % 70
    outputs = 1 if n % 3 == 0 else classes
    return {
        "outputs": outputs, "classes": classes, "smoothing": 0.1,
        "seen": rng.integers(0, 1000, classes) * 1.0, "class_weight": rng.uniform(0.5, 3, classes),
    }


ORACLES = {
    "smoothed_prior": Oracle(reference, example),
}
