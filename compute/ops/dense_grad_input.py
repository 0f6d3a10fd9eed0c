"""The gradient of a dense layer's input. On CUDA cuBLAS does it."""

from __future__ import annotations

from streamtrain.compute.spec import OnCuda, Op, given, out, size

HELP = "dx = dy w^T, 0 where the relu below was shut"


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
        products=("rows", "inputs", "outputs"), on_cuda=on_cuda,
        launches=("dense_finish_mask",), tiles="rows",
    ),
)
