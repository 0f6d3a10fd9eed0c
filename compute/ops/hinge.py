"""Hinge loss of a binary label by its margin, and the best constant margin, row by row."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, size, step_read

HELP = "hinge loss and gradient of a binary label"

ROWS = ("f32", "rows")
OPS = (
    Op(
        "hinge",
        (size("rows"), given("z", *ROWS), given("label", *ROWS), given("weight", *ROWS), step_read(), out("dz", *ROWS),
         out("loss", *ROWS)),
        each=("rows",), tiles="rows",
    ),
    Op(
        "running_margin",
        (size("rows"), given("label", *ROWS), given("weight", *ROWS), given("base", "f64", 2),
         given("share", "f64", 2), out("z", *ROWS)),
    ),
)
