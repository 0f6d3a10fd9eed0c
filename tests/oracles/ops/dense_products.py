"""The oracles of a dense layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops.dense_grad_weight import TOTALS
from streamtrain.compute.spec import Array
from tests.oracles.ops import oracle


def dense_forward_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    inputs, outputs = 1 + n % 37, 1 + n % 21
    return {
        "rows": n, "inputs": inputs, "outputs": outputs, "activation": n % 2, "x": rng.normal(size=(n, inputs)),
        "w": rng.normal(size=(inputs, outputs)), "bias": rng.normal(size=outputs),
    }


@oracle(dense_forward_example)
def dense_forward(
    rows: int, inputs: int, outputs: int, x: Array, w: Array, bias: Array, activation: int, y: Array
) -> None:
    product = x.astype(np.float64) @ w + bias
    y[:] = np.maximum(product, 0) if activation == 1 else product


def dense_finish_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    outputs = 1 + n % 21
    return {
        "rows": n, "outputs": outputs, "bias": rng.normal(size=outputs), "activation": n % 2,
        "y": rng.normal(size=(n, outputs)), "n": n, "mask": rng.normal(size=n), "dx": rng.normal(size=n),
    }


@oracle(dense_finish_example)
def dense_finish(rows: int, outputs: int, bias: Array, activation: int, y: Array) -> None:
    y += bias
    if activation == 1:
        np.maximum(y, 0, out=y)


@oracle(dense_finish_example)
def dense_finish_mask(n: int, mask: Array, dx: Array) -> None:
    dx[~(mask > 0)] = 0


def dense_grad_input_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    inputs, outputs = 1 + n % 37, 1 + n % 21
    return {
        "rows": n, "inputs": inputs, "outputs": outputs, "dy": rng.normal(size=(n, outputs)),
        "w": rng.normal(size=(inputs, outputs)), "mask": rng.normal(size=(n, inputs)) if n % 2 else None,
    }


@oracle(dense_grad_input_example)
def dense_grad_input(
    rows: int, inputs: int, outputs: int, dy: Array, w: Array, mask: Array | None, dx: Array
) -> None:
    product = dy.astype(np.float64) @ w.T
    dx[:] = product if mask is None else np.where(mask > 0, product, 0)


def dense_grad_weight_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    inputs, outputs = 1 + n % 37, 1 + n % 21
    return {
        "rows": n, "inputs": inputs, "outputs": outputs, "x": rng.normal(size=(n, inputs)),
        "dy": rng.normal(size=(n, outputs)), "totals": np.zeros((inputs, TOTALS)),
    }


@oracle(dense_grad_weight_example)
def dense_grad_weight(
    rows: int, inputs: int, outputs: int, x: Array, dy: Array, dw: Array, db: Array, totals: Array | None
) -> None:
    dw[:] = x.astype(np.float64).T @ dy
    db[:] = dy.astype(np.float64).sum(0)
