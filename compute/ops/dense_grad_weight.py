"""The gradient of a dense layer's weight and bias. On CUDA cuBLAS does it."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array, OnCuda, Op, given, out, scratch, size

HELP = "dw = x^T dy, db = column sums of dy, in float32 over 256 rows and in double over more"
TOTALS = 512   # for each input, where rows make more than one chain: a block's outputs, in whole vectors


def reference(
    rows: int, inputs: int, outputs: int, x: Array, dy: Array, dw: Array, db: Array, totals: Array | None
) -> None:
    dw[:] = x.astype(np.float64).T @ dy
    db[:] = dy.astype(np.float64).sum(0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    inputs, outputs = 1 + n % 37, 1 + n % 21
    return {
        "rows": n, "inputs": inputs, "outputs": outputs, "x": rng.normal(size=(n, inputs)),
        "dy": rng.normal(size=(n, outputs)), "totals": np.zeros((inputs, TOTALS)),
    }


def on_cuda(
    cuda: OnCuda, rows: int, inputs: int, outputs: int, x: int, dy: int, dw: int, db: int, totals: int
) -> None:
    cuda.product(dw, x, dy, inputs, rows, outputs, a_transposed=True)
    cuda.product(db, cuda.ones, dy, 1, rows, outputs)


OPS = (
    Op(
        "dense_grad_weight",
        (size("rows"), size("inputs"), size("outputs"), given("x", "f32", "rows", "inputs"),
         given("dy", "f32", "rows", "outputs"), out("dw", "f32", "inputs", "outputs"), out("db", "f32", "outputs"),
         scratch("totals", "f64", "inputs", TOTALS, optional=True)),
        reference, example, products=("rows", "inputs", "outputs"), on_cuda=on_cuda, tiles="sum",
    ),
)
