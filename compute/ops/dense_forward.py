"""The product of a dense layer with bias and relu. On CUDA cuBLAS does it."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array, OnCuda, Op, given, out, size, value

HELP = "y = x w + bias, optionally with relu; matrix product on CPU, cuBLAS on CUDA"
BUILT_IN = "relu"   # the activation of activation = 1; 0: none


def reference(
    rows: int, inputs: int, outputs: int, x: Array, w: Array, bias: Array, activation: int, y: Array
) -> None:
    product = x.astype(np.float64) @ w + bias
    y[:] = np.maximum(product, 0) if activation == 1 else product


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    inputs, outputs = 1 + n % 37, 1 + n % 21
    return {
        "rows": n, "inputs": inputs, "outputs": outputs, "activation": n % 2, "x": rng.normal(size=(n, inputs)),
        "w": rng.normal(size=(inputs, outputs)), "bias": rng.normal(size=outputs),
    }


def on_cuda(
    cuda: OnCuda, rows: int, inputs: int, outputs: int, x: int, w: int, bias: int, activation: int, y: int
) -> None:
    cuda.product(y, x, w, rows, inputs, outputs)
    cuda.launch("dense_finish", rows, outputs, bias, activation, y)


OPS = (
    Op(
        "dense_forward",
        (size("rows"), size("inputs"), size("outputs"), given("x", "f32", "rows", "inputs"),
         given("w", "f32", "inputs", "outputs"), given("bias", "f32", "outputs"), value("activation", "i32"),
         out("y", "f32", "rows", "outputs")),
        reference, example, products=("rows", "inputs", "outputs"), on_cuda=on_cuda,
        launches=("dense_finish",), tiles="rows",
    ),
)
