"""The oracles of ops that copy, scale and combine columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import oracle


def affine_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "scale": 0.3, "shift": -2.0, "x": rng.normal(0, 3, n)}


@oracle(affine_example)
def affine(n: int, scale: float, shift: float, y: Array, x: Array) -> None:
    y[:] = np.float64(np.float32(scale)) * x + np.float32(shift)


def concat_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    counts = (1 + n % 40, 1, 17)
    parts = [(sum(counts[:at]), count) for at, count in enumerate(counts)]
    x, dx = ([make((n, count)) for count in counts] for make in (lambda shape: rng.normal(size=shape), np.zeros))
    return {"rows": n, "inputs": 3, "outputs": 3, "width": sum(counts) + 2, "parts": parts, "x": x, "dx": dx,
            "dy": rng.normal(size=(n, sum(counts) + 2))}  # fmt: skip


@oracle(concat_example)
def concat_forward(rows: int, inputs: int, width: int, parts: Array, x: Sequence[Array], y: Array) -> None:
    for (at, count), content in zip(parts.tolist(), x, strict=True):
        y[:, at : at + count] = content


@oracle(concat_example)
def concat_gradient(rows: int, outputs: int, width: int, parts: Array, dy: Array, dx: Sequence[Array]) -> None:
    for (at, count), content in zip(parts.tolist(), dx, strict=True):
        content[:] = dy[:, at : at + count]


def copy_columns_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    count = n % 40
    return {
        "rows": n, "count": count, "given_width": count + 2, "from": n % 3, "width": count + 3, "at": n % 4,
        "x": rng.normal(size=(n, count + 2)), "y": rng.normal(size=(n, count + 3)),
    }


@oracle(copy_columns_example)
def copy_columns(rows: int, count: int, given_width: int, first: int, width: int, at: int, x: Array, y: Array) -> None:
    y[:, at : at + count] = x[:, first : first + count]


@oracle(copy_columns_example)
def add_columns(rows: int, count: int, given_width: int, first: int, width: int, at: int, x: Array, y: Array) -> None:
    y[:, at : at + count] += x[:, first : first + count]


def fill_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "value": -0.5}


@oracle(fill_example)
def fill(n: int, number: float, y: Array) -> None:
    y[:] = number


def pixels_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    columns = n % 40
    return {
        "rows": n, "columns": columns, "width": columns + 3, "at": n % 4,
        "pixels": rng.integers(0, 256, (n, columns)), "x": np.zeros((n, columns + 3)),
    }


@oracle(pixels_example)
def pixels(rows: int, columns: int, width: int, at: int, pixels: Array, x: Array) -> None:
    x[:, at : at + columns] = pixels.astype(x.dtype) / 255 - 0.5


def factorization_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    fields, width = 1 + n % 7, 1 + n % 70
    return {
        "rows": n, "fields": fields, "width": width, "x": rng.normal(size=(n, fields, width)), "dy": rng.normal(size=n),
    }


@oracle(factorization_example)
def factorization_forward(rows: int, fields: int, width: int, x: Array, y: Array) -> None:
    wide = x.astype(np.float64)
    before = np.cumsum(wide, 1)[:, :-1]   # of the fields before each
    y[:] = (wide[:, 1:] * before).sum((1, 2))


@oracle(factorization_example)
def factorization_gradient(rows: int, fields: int, width: int, dy: Array, x: Array, dx: Array) -> None:
    wide = x.astype(np.float64)
    dx[:] = dy[:, None, None] * (wide.sum(1, keepdims=True) - wide)
