"""Binary cross entropy of a logit, with its gradient and the predicted probability."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, size, step_read

HELP = "loss, gradient and probability of a binary label"

ROWS = ("f32", "rows")
OPS = (
    Op(
        "binary_cross_entropy",
        (size("rows"), given("z", *ROWS), given("label", *ROWS), given("weight", *ROWS), step_read(), out("dz", *ROWS),
         out("loss", *ROWS), out("p", *ROWS)),
        each=("rows",), tiles="rows",
    ),
)
