"""Mean, scale and limits of the standardised columns from their moments."""

from __future__ import annotations

from streamtrain.compute.moments import MOMENTS
from streamtrain.compute.spec import TEMPLATE_TYPES, Op, given, out, size

HELP = "mean, 1 / standard deviation, clip and limits of columns from their moments"

OPS = (
    Op(
        "standardize_scale",
        (size("columns"), given("moments", "f64", "columns", len(MOMENTS)), given("chosen", "u8", "columns"),
         out("mean", "T", "columns"), out("scale", "f32", "columns"), out("clip", "f32", "columns"),
         out("low", "T", "columns"), out("high", "T", "columns")),
        each=("columns",), types=tuple(TEMPLATE_TYPES),
    ),
)
