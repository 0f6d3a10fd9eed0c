"""The arguments that the ops of losses of a number have in common."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, size, step_read, value

ROWS = ("f32", "rows")


def number_op(name: str, *settings: str) -> Op:
    args = (
        size("rows"), *map(value, settings), given("z", *ROWS), given("label", *ROWS), given("weight", *ROWS),
        given("mean", "f32", 1), given("scale", "f32", 1), step_read(), out("dz", *ROWS), out("loss", *ROWS),
        out("p", *ROWS),
    )
    return Op(name, args, each=("rows",), tiles="rows")
