"""The gradient of a dense layer's input. On CUDA cuBLAS does it."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array, OnCuda, Op, given, out, size

HELP = "dx = dy w^T, 0 where the relu below was shut"


def reference(
    rows: int, inputs: int, outputs: int, dy: Array, w: Array, mask: Array | None, dx: Array
) -> None:
    product = dy.astype(np.float64) @ w.T
    dx[:] = product if mask is None else np.where(mask > 0, product, 0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    inputs, outputs = 1 + n % 37, 1 + n % 21
    return {
        "rows": n, "inputs": inputs, "outputs": outputs, "dy": rng.normal(size=(n, outputs)),
        "w": rng.normal(size=(inputs, outputs)), "mask": rng.normal(size=(n, inputs)) if n % 2 else None,
    }


def on_cuda(
    cuda: OnCuda, rows: int, inputs: int, outputs: int, dy: int, w: int, mask: int, dx: int
) -> None:
    cuda.product(dx, dy, w, rows, outputs, inputs, b_transposed=True)
    if mask:
        cuda.launch("dense_finish_mask", rows * inputs, mask, dx)


OPS = (
    Op(
        "dense_grad_input",
        (size("rows"), size("inputs"), size("outputs"), given("dy", "f32", "rows", "outputs"),
         given("w", "f32", "inputs", "outputs"), given("mask", "f32", "rows", "inputs", optional=True),
         out("dx", "f32", "rows", "inputs")),
        reference, example, products=("rows", "inputs", "outputs"), on_cuda=on_cuda,
        launches=("dense_finish_mask",), tiles="rows",
    ),
)
