"""How often a category's value was seen, in place of the value."""

from __future__ import annotations

from streamtrain.compute.builder import Builder
from streamtrain.compute.ops.count_table import FORMS
from streamtrain.compute.options import ColumnName, Word
from streamtrain.compute.spec import Ref
from streamtrain.compute.stateful.transform import Batch, Held, Stateful

HELP = "how many rows with this value were seen before: log(1 + n), its share of all rows, or n"
OPTIONS = {
    "count": ColumnName(help="of which column"),
    "as": Word(of=FORMS, default=FORMS[0], help="log: log(1 + n); share: n by all rows; number: n"),
}
EXAMPLES = (
    {"columns": {"x": {"kind": "category", "buckets": 9}}, "table": {"count": "x"}},
    {"columns": {"x": {"role": "input", "kind": "category"}},
     "table": {"count": "x", "as": "share", "buckets": 50, "missing": "none"}},
    {"columns": {"x": {"role": "input"}}, "table": {"count": "x", "as": "number", "hash_bits": 64, "missing": "skip"}},
)


class Count(Stateful):
    def build(self, builder: Builder, held: Held, batch: Batch, to: Ref, at: int) -> None:
        cells = held.buckets + 1   # the last one: all rows
        base, share = builder.statistic(held.block(), "statistics", "count", cells)
        rows, form = builder.rows, FORMS.index(held.settings["as"])
        builder.call("count_value", rows, *batch.place, cells, to.shape[1], at, form, batch.x, base, to)
        with builder.during("train"):
            builder.call("count_add", rows, *batch.place, cells, batch.x, batch.weight, share)


TRANSFORM = Count()
