"""The gradient of a dense layer's weight and bias. On CUDA cuBLAS does it."""

from __future__ import annotations

from streamtrain.compute.spec import OnCuda, Op, given, out, scratch, size

HELP = "dw = x^T dy, db = column sums of dy, in float32 over 256 rows and in double over more"
TOTALS = 512   # for each input, where rows make more than one chain: a block's outputs, in whole vectors


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
        products=("rows", "inputs", "outputs"), on_cuda=on_cuda, tiles="sum",
    ),
)
