"""The two kernels of each optimizer: over the flat vector of parameters, and <name>_rows over the touched rows of a
table (native/base/update.h)."""

from __future__ import annotations

from streamtrain.compute.ops._touched import SIZES, TOUCHED
from streamtrain.compute.optimizers import KEPT, SETTINGS
from streamtrain.compute.spec import Arg, Op, changed, each, given, size, step_changed


def update(name: str, factors: int, rows: tuple[str, ...] = ()) -> tuple[Op, Op]:
    """Returns the ops of an optimizer whose formula has so many numbers; `rows`: as Op has it."""
    columns = len(SETTINGS) + factors

    def state_args(*shape: str) -> tuple[Arg, ...]:
        return changed("p", "f32", *shape), *(changed(name, "f32", *shape, optional=True) for name in KEPT)

    return (
        Op(name,
           (size("n"), size("stretches"), step_changed(), given("settings", "f64", "stretches", columns),
            given("scale", "f32", "stretches", optional=True), given("g", "f32", "n"), *state_args("n")),
           each=() if rows else ("n",), rows=rows),
        Op(f"{name}_rows",
           (*SIZES, step_changed(), given("settings", "f64", 1, columns),
            given("scale", "f32", "tables", optional=True), *TOUCHED, *(each(arg, "tables") for arg in state_args())),
           rows=("tables", "entries")),
    )
