"""A count of how often a category's value was seen, in place of the value."""

from __future__ import annotations

from streamtrain.compute.builder import STATISTICS, Builder
from streamtrain.compute.ops.count_table import FORMS
from streamtrain.compute.options import ColumnName, Duration, Word
from streamtrain.compute.spec import Ref
from streamtrain.compute.stateful.transform import Batch, Reads, Settings, Stateful, StatefulSpec, decayed_table

HELP = "how many rows with this value were seen before: log(1 + n), its share of all rows, or n"
OPTIONS = {
    "count": ColumnName(help="the column to read"),
    "half_life": Duration(default=0.0, help="of event time after which a row counts half; default: all count the same"),
    "as": Word(of=FORMS, default=FORMS[0], help="log: log(1 + n); share: n by all rows; number: n"),
}
EXAMPLES = (
    {"columns": {"x": {"kind": "category", "buckets": 9}}, "table": {"count": "x"}},
    {"columns": {"x": {"role": "input", "kind": "category"}},
     "table": {"count": "x", "as": "share", "buckets": 50, "missing": "none"}},
    {"columns": {"x": {"role": "input"}}, "table": {"count": "x", "as": "number", "hash_bits": 64, "missing": "skip"}},
    {"columns": {"x": {"kind": "category", "buckets": 9}, "at": {"role": "event_time"}},
     "table": {"count": "x", "half_life": "1s", "buckets": 50}},
)


class Count(Stateful):
    def feeds(self, settings: Settings) -> tuple[tuple[Reads, int], ...]:
        return (("bucket", 0), ("time", -1)) if settings["half_life"] else (("bucket", 0),)

    def build(self, builder: Builder, spec: StatefulSpec, batch: Batch, to: Ref, at: int) -> None:
        if spec.settings["half_life"]:
            self._decaying(builder, spec, batch, to, at)
            return
        cells = spec.buckets + 1   # the last one: all rows
        base, share = builder.statistic(spec.block(), "statistics", "sum", cells, dtype="i64")
        rows, form = builder.rows, FORMS.index(spec.settings["as"])
        builder.call("count_value", rows, *batch.place, cells, to.shape[1], at, form, batch.x, base, to)
        with builder.during(*STATISTICS):
            builder.call("count_add", rows, *batch.place, cells, batch.x, batch.weight, share)

    def _decaying(self, builder: Builder, spec: StatefulSpec, batch: Batch, to: Ref, at: int) -> None:
        cells, width, form = spec.buckets + 2, 2, FORMS.index(spec.settings["as"])
        base, share = decayed_table(builder, spec, cells, width)
        place = (*batch.place, cells, width)
        builder.call("decayed_value", builder.rows, *place, 0, to.shape[1], at, form, batch.x, base, to)
        batch.add_decayed(builder, spec, cells, width, share)


TRANSFORM = Count()
