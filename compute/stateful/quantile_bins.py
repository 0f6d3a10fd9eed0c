"""A number as the bin it lies in, where bins hold about as many rows each."""

from __future__ import annotations

from streamtrain.compute.builder import STATISTICS, Builder
from streamtrain.compute.ops.sketch import EDGES
from streamtrain.compute.options import ColumnName, Whole
from streamtrain.compute.spec import Ref
from streamtrain.compute.stateful.transform import Batch, Stateful, StatefulSpec

HELP = "which of some bins a number lies in that hold about as many rows each, as a category; bounds to 3 %"
OPTIONS = {
    "quantile_bins": ColumnName(help="the column to read"),
    "bins": Whole(least=2, most=1_000, default=32, help="number of bins"),
}
EXAMPLES = (
    {"columns": {"x": {}}, "table": {"quantile_bins": "x", "bins": 4, "embed": 3}},
    {"columns": {"x": {"role": "input"}}, "table": {"quantile_bins": "x", "missing": 0}},
)


class QuantileBins(Stateful):
    reads = "float"

    def indexes(self, spec: StatefulSpec) -> int:
        return int(spec.settings["bins"])

    def build(self, builder: Builder, spec: StatefulSpec, batch: Batch, to: Ref, at: int) -> None:
        rows, width = builder.rows, EDGES + spec.settings["bins"] - 1
        base, share = builder.statistic(spec.block(), "statistics", "quantiles", 1, width)
        builder.call("sketch_bin", rows, *batch.place, width, batch.x, base, to)
        with builder.during(*STATISTICS):
            builder.call("sketch_add", rows, *batch.place, width, batch.x, batch.weight, share)


TRANSFORM = QuantileBins()
