"""A number centred by the median and scaled by the quartiles, which no outlier moves."""

from __future__ import annotations

from streamtrain.compute.builder import STATISTICS, Builder
from streamtrain.compute.ops.sketch import EDGES, QUARTILES
from streamtrain.compute.options import ColumnName, Number
from streamtrain.compute.spec import Ref
from streamtrain.compute.stateful.transform import Batch, Stateful, StatefulSpec

HELP = "(x - median) / (third quartile - first), cut at -clip and clip; quartiles to 3 %"
OPTIONS = {
    "robust_scale": ColumnName(help="the column to read"),
    "clip": Number(above=0, most=1e6, default=8.0, help="the result is cut at -clip and clip"),
}
EXAMPLES = (
    {"columns": {"x": {}}, "table": {"robust_scale": "x"}},
    {"columns": {"x": {"role": "input"}}, "table": {"robust_scale": "x", "clip": 2, "missing": "skip"}},
)


class RobustScale(Stateful):
    reads = "float"

    def build(self, builder: Builder, spec: StatefulSpec, batch: Batch, to: Ref, at: int) -> None:
        rows, width, clip = builder.rows, EDGES + QUARTILES, spec.settings["clip"]
        base, share = builder.statistic(spec.block(), "statistics", "quantiles", 1, width)
        builder.call("sketch_scale", rows, *batch.place, width, to.shape[1], at, batch.x, base, clip, to)
        with builder.during(*STATISTICS):
            builder.call("sketch_add", rows, *batch.place, width, batch.x, batch.weight, share)


TRANSFORM = RobustScale()
