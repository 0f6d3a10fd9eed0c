"""A number in deviations from its mean, both of which forget by event time."""

from __future__ import annotations

from streamtrain.compute.builder import Builder
from streamtrain.compute.ops.decayed import POWERS
from streamtrain.compute.options import ColumnName, Duration, Number
from streamtrain.compute.spec import Ref
from streamtrain.compute.stateful.transform import Batch, Reads, Settings, Stateful, StatefulSpec, decayed_table

HELP = "(x - mean) / deviation, cut at -clip and clip, of rows that count half as much for each half-life"
OPTIONS = {
    "decayed_scale": ColumnName(help="the column to read"),
    "half_life": Duration(help="of event time after which a row counts half"),
    "clip": Number(above=0, most=1e6, default=8.0, help="deviations at which it is cut"),
}
EXAMPLES = (
    {"columns": {"x": {}, "at": {"role": "event_time"}}, "table": {"decayed_scale": "x", "half_life": "1s"}},
)


class DecayedScale(Stateful):
    reads = "float"

    def feeds(self, settings: Settings) -> tuple[tuple[Reads, int], ...]:
        return (("float", 0), ("time", -1))

    def build(self, builder: Builder, spec: StatefulSpec, batch: Batch, to: Ref, at: int) -> None:
        base, share = decayed_table(builder, spec, 2, POWERS)
        x, column = batch.of("float")
        builder.call("decayed_scale", builder.rows, x.shape[1], column, to.shape[1], at, x, base,
                     spec.settings["clip"], to)   # fmt: skip
        batch.add_decayed(builder, spec, 2, POWERS, share)


TRANSFORM = DecayedScale()
