"""The minimised loss on a batch before its update, where that is not the log loss."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, size, step_changed

HELP = "weighted loss of a model and of the constant prediction, where it is not the log loss"

ROWS = ("f32", "rows")
OPS = (
    Op(
        "score_objective",
        (size("rows"), given("loss", *ROWS), given("constant_loss", *ROWS), given("weight", *ROWS), step_changed(),
         changed("objective", "f64", 2)),
    ),
)
