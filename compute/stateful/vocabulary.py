"""A category of the values that were seen often enough, each with an id of its own; all others share index 0.

Its state is native/base/vocabulary.h's; native/state/rules/vocabulary.h says who has an id.
"""

from __future__ import annotations

from streamtrain.compute.builder import STATISTICS, Builder
from streamtrain.compute.ops.vocabulary import WIDTH, empty
from streamtrain.compute.options import ColumnName, Duration, Whole
from streamtrain.compute.spec import Ref
from streamtrain.compute.stateful.transform import Batch, Reads, Settings, Stateful, StatefulSpec

HELP = "the value as a category without collisions, of those seen often enough; one index for all others"
OPTIONS = {
    "vocabulary": ColumnName(help="the column to read"),
    "capacity": Whole(least=1, most=1 << 24, help="values with an id; as many more are counted for one; 64 bytes each"),
    "admit": Whole(least=1, most=10**15, default=1, help="rows from which a value may have one"),
    "evict": Duration(default=0.0, help="of event time without a row after which a value is forgotten; default: none"),
}
EXAMPLES = (
    {"columns": {"x": {"kind": "category", "buckets": 9}}, "table": {"vocabulary": "x", "capacity": 3, "embed": 3}},
    {"columns": {"x": {"role": "input", "kind": "category"}, "at": {"role": "event_time"}},
     "table": {"vocabulary": "x", "capacity": 50, "admit": 2, "evict": "2s", "hash_bits": 64, "missing": "none"}},
)


class Vocabulary(Stateful):
    reads = "hash"

    def feeds(self, settings: Settings) -> tuple[tuple[Reads, int], ...]:
        return (("hash", 0), ("time", -1)) if settings["evict"] else (("hash", 0),)

    def indexes(self, spec: StatefulSpec) -> int:
        return int(spec.settings["capacity"]) + 1

    def rows_of(self, spec: StatefulSpec) -> str:
        return spec.block()

    def build(self, builder: Builder, spec: StatefulSpec, batch: Batch, to: Ref, at: int) -> None:
        settings, rows, capacity = spec.settings, builder.rows, spec.settings["capacity"]
        start = empty(0, admit=settings["admit"], evict_ms=int(1000 * settings["evict"]))
        base, share = builder.statistic(spec.block(), "statistics", "vocabulary", capacity + 1, WIDTH, start=start)
        words = base.elements
        builder.call("vocabulary_find", rows, *batch.place, capacity, words, batch.x, base, to)
        times, column = batch.given.get("time", (None, 0))
        place = (1 if times is None else times.shape[1], column)
        with builder.during(*STATISTICS):
            builder.call("vocabulary_add", rows, *batch.place, *place, capacity, words, batch.x, times, batch.weight,
                         base, share)   # fmt: skip


TRANSFORM = Vocabulary()
