"""Bias, relu and mask of a dense layer where cuBLAS does the plain product."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array, Op, changed, given, size, value

HELP = "bias, relu and mask around cuBLAS"


def reference(rows: int, outputs: int, bias: Array, activation: int, y: Array) -> None:
    y += bias
    if activation == 1:
        np.maximum(y, 0, out=y)


def reference_mask(n: int, mask: Array, dx: Array) -> None:
    dx[~(mask > 0)] = 0


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    outputs = 1 + n % 21
    return {
        "rows": n, "outputs": outputs, "bias": rng.normal(size=outputs), "activation": n % 2,
        "y": rng.normal(size=(n, outputs)), "n": n, "mask": rng.normal(size=n), "dx": rng.normal(size=n),
    }


OPS = (
    Op(
        "dense_finish",
        (size("rows"), size("outputs"), given("bias", "f32", "outputs"), value("activation", "i32"),
         changed("y", "f32", "rows", "outputs")),
        reference, example, each=("rows", "outputs"),
    ),
    Op(
        "dense_finish_mask", (size("n"), given("mask", "f32", "n"), changed("dx", "f32", "n")), reference_mask, example,
        each=("n",),
    ),
)
