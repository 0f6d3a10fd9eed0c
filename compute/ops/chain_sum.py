"""A sum over the rows of a batch, from those over its tiles."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, size

HELP = "sums over tiles of a batch, added in double in their order and rounded once"

OPS = (
    Op("chain_sum",
       (size("n"), size("turn"), given("part", "f32", "n"), changed("total", "f64", "n"), changed("sum", "f32", "n")),
       each=("n",)),
)
