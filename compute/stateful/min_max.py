"""A number's place between the least and the greatest seen."""

from __future__ import annotations

from streamtrain.compute.builder import STATISTICS, Builder
from streamtrain.compute.options import ColumnName
from streamtrain.compute.spec import Ref
from streamtrain.compute.stateful.transform import Batch, Stateful, StatefulSpec

HELP = "(x - least) / (greatest - least) of the rows seen, from 0 to 1"
OPTIONS = {"min_max": ColumnName(help="the column to read")}
EXAMPLES = (
    {"columns": {"x": {}}, "table": {"min_max": "x"}},
    {"columns": {"x": {"role": "input"}}, "table": {"min_max": "x", "missing": 0.5}},
)


class MinMax(Stateful):
    reads = "float"

    def build(self, builder: Builder, spec: StatefulSpec, batch: Batch, to: Ref, at: int) -> None:
        rows = builder.rows
        base, share = builder.statistic(spec.block(), "statistics", "extremes", 1, 3)
        builder.call("extremes_scale", rows, *batch.place, to.shape[1], at, batch.x, base, to)
        with builder.during(*STATISTICS):
            builder.call("extremes_add", rows, *batch.place, batch.x, batch.weight, share)


TRANSFORM = MinMax()
