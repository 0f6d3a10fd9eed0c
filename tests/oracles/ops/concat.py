"""The oracle of compute/ops/concat.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def forward(rows: int, inputs: int, width: int, parts: Array, x: Sequence[Array], y: Array) -> None:
    for (at, count), content in zip(parts.tolist(), x, strict=True):
        y[:, at : at + count] = content


def gradient(rows: int, outputs: int, width: int, parts: Array, dy: Array, dx: Sequence[Array]) -> None:
    for (at, count), content in zip(parts.tolist(), dx, strict=True):
        content[:] = dy[:, at : at + count]


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    counts = (1 + n % 40, 1, 17)
    parts = [(sum(counts[:at]), count) for at, count in enumerate(counts)]
    x, dx = ([make((n, count)) for count in counts] for make in (lambda shape: rng.normal(size=shape), np.zeros))
    return {"rows": n, "inputs": 3, "outputs": 3, "width": sum(counts) + 2, "parts": parts, "x": x, "dx": dx,
            "dy": rng.normal(size=(n, sum(counts) + 2))}  # fmt: skip


ORACLES = {
    "concat_forward": Oracle(forward, example),
    "concat_gradient": Oracle(gradient, example),
}
