"""The product of a dense layer with bias and relu. On CUDA cuBLAS does it."""

from __future__ import annotations

from streamtrain.compute.spec import OnCuda, Op, given, out, size, value

HELP = "y = x w + bias, optionally with relu; matrix product on CPU, cuBLAS on CUDA"
BUILT_IN = "relu"   # the activation of activation = 1; 0: none


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
        products=("rows", "inputs", "outputs"), on_cuda=on_cuda,
        launches=("dense_finish",), tiles="rows",
    ),
)
