"""A category of which values that were seen seldom are one: the other."""

from __future__ import annotations

from streamtrain.compute.builder import STATISTICS, Builder
from streamtrain.compute.options import ColumnName, Whole
from streamtrain.compute.spec import Ref
from streamtrain.compute.stateful.transform import Batch, Stateful, StatefulSpec

HELP = "the value where so many rows with it were seen before, else one index for all others"
OPTIONS = {
    "rare_to_other": ColumnName(help="the column to read"),
    "least": Whole(least=1, most=10**15, default=20, help="rows from which a value is one of its own"),
}
EXAMPLES = (
    {"columns": {"x": {"kind": "category", "buckets": 9}}, "table": {"rare_to_other": "x", "embed": 3}},
    {"columns": {"x": {"role": "input", "kind": "category"}},
     "table": {"rare_to_other": "x", "least": 2, "buckets": 50, "missing": "none"}},
)


class RareToOther(Stateful):
    def indexes(self, spec: StatefulSpec) -> int:
        return spec.buckets + 1

    def build(self, builder: Builder, spec: StatefulSpec, batch: Batch, to: Ref, at: int) -> None:
        cells, rows = spec.buckets + 1, builder.rows
        base, share = builder.statistic(spec.block(), "statistics", "sum", cells, dtype="i64")
        builder.call("count_index", rows, *batch.place, cells, spec.settings["least"], batch.x, base, to)
        with builder.during(*STATISTICS):
            builder.call("count_add", rows, *batch.place, cells, batch.x, batch.weight, share)


TRANSFORM = RareToOther()
