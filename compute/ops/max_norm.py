"""The norm of the weights that lead to each output, held below a limit (Srivastava et al.: 2014)."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, size, step_read, value

HELP = "columns of a matrix shrunk to a norm"

OPS = (
    Op(
        "max_norm",
        (size("inputs"), size("outputs"), step_read(), value("limit"), changed("w", "f32", "inputs", "outputs")),
        rows=("outputs",),
    ),
)
