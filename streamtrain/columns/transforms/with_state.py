"""A transform with state as decoders have it: its sources go into blocks of their own, and the model's plan goes on.

What a row becomes there is compute/stateful's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamtrain.columns.kinds.bags import DEFAULT_EMBED
from streamtrain.columns.transforms.transform import HASH, NUMBER, TEXT, TIME, Result, Source, Transform, Use
from streamtrain.compute import stateful
from streamtrain.compute.stateful.transform import Reads, Stateful, StatefulSpec
from streamtrain.compute.stateful_inputs import VOCABULARY, stateful_spec

DEFAULT_BUCKETS = 4096
_TAKES = {"float": {NUMBER}, "bucket": {TEXT, HASH, NUMBER}, "time": {TIME}, "hash": {TEXT, HASH, NUMBER}}
_OF_CATEGORIES: Mapping[Reads, tuple[str, ...]] = {"bucket": ("buckets", "hash_bits"), "hash": ("hash_bits",)}
# what lies in the slot of a source that is not the first one
BESIDE: Mapping[str, Mapping[str, Any]] = {
    "float": {"kind": "number", "missing": 0}, "time": {"role": "event_time", "missing": -1},
}  # fmt: skip


class WithState(Transform):
    def __init__(self, entry: Stateful) -> None:
        self.entry = entry

    def problems(self, use: Use) -> Iterator[str]:
        for reads, index in self.entry.feeds(use.given):
            if index >= 0 and use.sources[index].holds not in _TAKES[reads]:
                source, expected = use.sources[index], " or ".join(sorted(_TAKES[reads]))
                yield f"expected columns that hold a {expected}, got {source.name}, which holds a {source.holds}"

    def stateful(self, transform: str, use: Use, rest: Mapping[str, Any]) -> StatefulSpec:
        """It, of its own settings and those of the column that it makes, in which nothing is wrong."""
        buckets = rest.get("buckets", DEFAULT_BUCKETS) if self._is_of_category(use) else 0
        without = stateful_spec(use.name, transform, buckets, 0, dict(use.given))
        if not self.entry.indexes(without):
            return without
        return stateful_spec(use.name, transform, buckets, rest.get("embed", DEFAULT_EMBED), dict(use.given))

    def _is_of_category(self, use: Use) -> bool:
        return self._first(use) == "bucket"

    def _first(self, use: Use) -> Reads:
        return self.entry.feeds(use.given)[0][0]

    def column(self, use: Use, reads: Reads, rest: Mapping[str, Any]) -> Mapping[str, Any]:
        """The settings of what lies in the slot."""
        if self._first(use) != reads:
            return BESIDE[reads]
        settings = {name: value for name, value in rest.items() if name != "embed"}
        if reads == "bucket":
            return {"buckets": DEFAULT_BUCKETS, **settings, "kind": "category"}
        if reads == "hash":
            own = stateful.options(VOCABULARY)
            vocabulary = {name: value for name, value in use.given.items() if name in own and name != VOCABULARY}
            return {**settings, "kind": "category", VOCABULARY: vocabulary}
        return {**settings, "kind": "number"}

    def misplaced(self, stateful_transform: StatefulSpec, use: Use, rest: Mapping[str, Any]) -> Iterator[str]:
        """Which settings are of another transform's columns."""
        allowed = ["missing", *_OF_CATEGORIES.get(self._first(use), ())]
        allowed += ["embed"] if stateful_transform.embed else []
        for name, value in rest.items():
            if name not in allowed:
                yield f"{name}: expected none but {', '.join(allowed)} beside its own settings, got {value!r}"


def feeder(reads: Reads, source: Source) -> tuple[str, Result]:
    """The transform that puts a source there, and what it makes."""
    if reads in ("bucket", "hash") and source.holds != HASH:
        return "hash", Result(HASH)
    return "rename", Result(source.holds)
