"""Bias, relu and mask of a dense layer where cuBLAS does the plain product."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, size, value

HELP = "bias, relu and mask around cuBLAS"

OPS = (
    Op(
        "dense_finish",
        (size("rows"), size("outputs"), given("bias", "f32", "outputs"), value("activation", "i32"),
         changed("y", "f32", "rows", "outputs")),
        each=("rows", "outputs"),
    ),
    Op(
        "dense_finish_mask", (size("n"), given("mask", "f32", "n"), changed("dx", "f32", "n")),
        each=("n",),
    ),
)
