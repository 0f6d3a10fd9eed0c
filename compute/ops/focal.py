"""Focal loss of a binary label: rows that are right already count little."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, size, step_read, value

HELP = "focal loss and gradient of a binary label"

ROWS = ("f32", "rows")
OPS = (
    Op(
        "focal",
        (size("rows"), value("gamma"), value("balance"), given("z", *ROWS), given("label", *ROWS),
         given("weight", *ROWS), step_read(), out("dz", *ROWS), out("loss", *ROWS)),
        each=("rows",), tiles="rows",
    ),
)
