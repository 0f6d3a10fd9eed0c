"""The oracle of compute/ops/class_prior.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def reference(outputs: int, classes: int, seen: Array, offset: Array) -> None:
    counts = seen + 0.5
    offset[:] = np.log(counts[1] / counts[0]) if outputs == 1 else np.log(counts / counts.sum())


def add(rows: int, outputs: int, offset: Array, z: Array) -> None:
    z += offset


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    classes = 2 + n % 70
    outputs = 1 if n % 3 == 0 else classes
    return {
        "rows": n, "outputs": outputs, "classes": 2 if outputs == 1 else classes,
        "seen": rng.integers(0, 1000, 2 if outputs == 1 else classes) * 1.0, "offset": rng.normal(size=outputs),
        "z": rng.normal(size=(n, outputs)),
    }


ORACLES = {
    "class_prior": Oracle(reference, example),
    "add_offset": Oracle(add, example),
}
