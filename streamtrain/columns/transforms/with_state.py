"""A transform with state as decoders have it: its source goes into a block of its own, and the model's plan goes on.

What a row becomes there is compute/stateful's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from streamtrain.columns.kinds.bags import DEFAULT_EMBED
from streamtrain.columns.transforms.transform import HASH, NUMBER, TEXT, Cell, Result, Transform, Use
from streamtrain.compute.held import held_of
from streamtrain.compute.stateful.transform import Held, Stateful

DEFAULT_BUCKETS = 4096
_OF_CATEGORIES = ("buckets", "hash_bits")
_SETTINGS = ("missing",)


class WithState(Transform):
    has_state = True

    def __init__(self, entry: Stateful, feeders: Callable[[str], Transform]) -> None:
        """`feeders`: the transforms without state, by name."""
        self.entry, self._feeders = entry, feeders
        self.takes = frozenset({NUMBER}) if entry.reads == "float" else frozenset({TEXT, HASH, NUMBER})

    def native_name(self, name: str, use: Use) -> str:
        """What puts the source there."""
        return "rename" if self.entry.reads == "float" or use.sources[0].holds == HASH else "hash"

    def _feeder(self, use: Use) -> Transform:
        return self._feeders(self.native_name("", use))

    def results(self, use: Use) -> list[Result]:
        return [Result(result.holds) for result in self._feeder(use).results(use)]

    def native_options(self, use: Use) -> dict[str, Any]:
        return self._feeder(use).native_options(use)

    def meaning(self, use: Use, cells: Sequence[Cell], given: Sequence[bool]) -> list[Cell]:
        return self._feeder(use).meaning(use, cells, given)

    def held(self, transform: str, use: Use, rest: Mapping[str, Any]) -> Held:
        """It, of its own settings and those of the column that it makes, in which nothing is wrong."""
        buckets = rest.get("buckets", DEFAULT_BUCKETS) if self.entry.reads == "bucket" else 0
        without = held_of(use.name, transform, buckets, 0, dict(use.given))
        if not self.entry.indexes(without):
            return without
        return held_of(use.name, transform, buckets, rest.get("embed", DEFAULT_EMBED), dict(use.given))

    def column(self, rest: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of what lies in the slot."""
        settings = {name: value for name, value in rest.items() if name != "embed"}
        if self.entry.reads == "float":
            return {**settings, "kind": "number"}
        return {"buckets": DEFAULT_BUCKETS, **settings, "kind": "category"}

    def misplaced(self, held: Held, rest: Mapping[str, Any]) -> Iterator[str]:
        """Which settings are of another transform's columns."""
        allowed = (*_SETTINGS, *(_OF_CATEGORIES if self.entry.reads == "bucket" else ()),
                   *(("embed",) if held.embed else ()))  # fmt: skip
        for name, value in rest.items():
            if name not in allowed:
                yield f"{name}: expected none but {', '.join(allowed)} beside its own settings, got {value!r}"
