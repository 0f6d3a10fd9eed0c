"""The gradient of a dense layer's weight and bias. On CUDA cuBLAS does it."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Arg, Array, Op, given, out, size

HELP = "dw = x^T dy, db = column sums of dy"


def workspace_floats(rows: int, inputs: int, outputs: int) -> int:
    """What the kernel's workspace must hold."""
    return 0


def reference(
    rows: int, inputs: int, outputs: int, x: Array, dy: Array, dw: Array, db: Array, workspace: Array | None
) -> None:
    dw[:] = x.astype(np.float64).T @ dy
    db[:] = dy.astype(np.float64).sum(0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    inputs, outputs = 1 + n % 37, 1 + n % 21
    return {
        "rows": n, "inputs": inputs, "outputs": outputs, "x": rng.normal(size=(n, inputs)),
        "dy": rng.normal(size=(n, outputs)), "workspace": None,
    }


OPS = (
    Op(
        "dense_grad_weight",
        (size("rows"), size("inputs"), size("outputs"), given("x", "f32", "rows", "inputs"),
         given("dy", "f32", "rows", "outputs"), out("dw", "f32", "inputs", "outputs"), out("db", "f32", "outputs"),
         Arg("workspace", "changed", "f32", optional=True)),
        reference, example, host_only=True,
    ),
)
