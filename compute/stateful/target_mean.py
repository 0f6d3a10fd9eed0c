"""The label's mean over the rows with a category's value (Micci-Barreca, "A preprocessing scheme for high-cardinality
categorical attributes", 2001): of rows before the round alone, so that no row sees its own label.
"""

from __future__ import annotations

from streamtrain.compute.builder import STATISTICS, Builder
from streamtrain.compute.options import ColumnName, Number
from streamtrain.compute.spec import Ref
from streamtrain.compute.stateful.transform import Batch, Stateful, StatefulSpec

HELP = "how far the label's mean over rows with this value lies from that of all rows, in the label's deviations"
OPTIONS = {
    "target_mean": ColumnName(help="the column to read"),
    "prior": Number(least=0, most=1e15, default=20.0, help="rows with all rows' mean that each value begins with"),
}
EXAMPLES = (
    {"columns": {"x": {"kind": "category", "buckets": 9}}, "table": {"target_mean": "x"}},
    {"columns": {"x": {"role": "input", "kind": "category"}},
     "table": {"target_mean": "x", "prior": 0, "buckets": 50, "missing": "none"}},
)


class TargetMean(Stateful):
    reads_label = True

    def build(self, builder: Builder, spec: StatefulSpec, batch: Batch, to: Ref, at: int) -> None:
        rows, buckets = builder.rows, spec.buckets
        base, share = builder.statistic(spec.block(), "statistics", "sum", buckets, 2)
        base_all, share_all = builder.statistic(spec.block("all"), "statistics", "sum", 3)
        builder.call(
            "target_value", rows, *batch.place, buckets, to.shape[1], at, batch.x, base, base_all,
            spec.settings["prior"], to,
        )
        with builder.during(*STATISTICS):
            builder.call("target_add", rows, *batch.place, buckets, batch.x, batch.label, batch.weight, share)
            builder.call("target_add_all", rows, batch.label, batch.weight, share_all)


TRANSFORM = TargetMean()
