"""Matrices side by side in one, and the columns of one in matrices of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamtrain.compute.spec import Array, Op, each, given, out, part, size

HELP = "matrices side by side"
PART = 2   # of each its first column in the wide one, and how many it has


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


OPS = (
    Op("concat_forward",
       (size("rows"), size("inputs"), size("width"), given("parts", "i64", "inputs", PART),
        each(given("x", "f32", "rows"), "inputs"), part("y", "f32", "rows", "width")),
       forward, example, rows=("rows",), tiles="rows"),
    Op("concat_gradient",
       (size("rows"), size("outputs"), size("width"), given("parts", "i64", "outputs", PART),
        given("dy", "f32", "rows", "width"), each(out("dx", "f32", "rows"), "outputs")),
       gradient, example, rows=("rows",), tiles="rows"),
)  # fmt: skip
