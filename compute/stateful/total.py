"""The sum of a number over the rows with a category's value; with a half-life of event time old rows count less."""

from __future__ import annotations

from streamtrain.compute.builder import Builder
from streamtrain.compute.ops.count_table import FORMS
from streamtrain.compute.options import ColumnName, Duration, Word
from streamtrain.compute.spec import Ref
from streamtrain.compute.stateful.transform import Batch, Reads, Settings, Stateful, StatefulSpec, decayed_table

HELP = "the sum of a number over the rows with this value before: log(1 + |s|) with its sign, or s; may decay"
TOTAL_FORMS = (FORMS[0], FORMS[2])
OPTIONS = {
    "total": ColumnName(help="the column of numbers to add up"),
    "by": ColumnName(help="the category whose values each have a sum"),
    "half_life": Duration(default=0.0, help="of event time after which a row counts half; default: all count the same"),
    "as": Word(of=TOTAL_FORMS, default=TOTAL_FORMS[0], help="log: log(1 + |s|) with its sign; number: s"),
}
EXAMPLES = (
    {"columns": {"x": {}, "c": {"kind": "category", "buckets": 9}}, "table": {"total": "x", "by": "c", "buckets": 50}},
    {"columns": {"x": {"role": "input"}, "c": {"role": "input", "kind": "category"}, "at": {"role": "event_time"}},
     "table": {"total": "x", "by": "c", "half_life": "2s", "as": "number", "missing": "none"}},
)


class Total(Stateful):
    def feeds(self, settings: Settings) -> tuple[tuple[Reads, int], ...]:
        return (("bucket", 1), ("float", 0), *((("time", -1),) if settings["half_life"] else ()))

    def build(self, builder: Builder, spec: StatefulSpec, batch: Batch, to: Ref, at: int) -> None:
        cells, width, form = spec.buckets + 2, 2, FORMS.index(spec.settings["as"])
        base, share = decayed_table(builder, spec, cells, width)
        x, column = batch.of("bucket")
        builder.call("decayed_value", builder.rows, x.shape[1], column, cells, width, 1, to.shape[1], at, form, x,
                     base, to)   # fmt: skip
        batch.add_decayed(builder, spec, cells, width, share)


TRANSFORM = Total()
