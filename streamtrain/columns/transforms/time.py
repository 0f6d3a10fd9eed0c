"""Parts of a time: numbers, categories with a bucket each, or points on a circle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamtrain.columns.kinds.zones import instants, names
from streamtrain.columns.transforms.transform import NUMBER, TIME, Result, Transform, Use
from streamtrain.compute.options import ColumnName, Flag, Option, Several, Word

HELP = "hour, weekday and other parts of a time, columns NAME_PART; cyclic: NAME_PART_sin and NAME_PART_cos"


class Part(NamedTuple):
    """A part counts from `first` on; `size`: how many there are, 0 of what is not cyclic."""

    first: int
    size: int


PARTS = {
    "year": Part(0, 0), "month": Part(1, 12), "day": Part(1, 31), "hour": Part(0, 24), "minute": Part(0, 60),
    "second": Part(0, 60), "weekday": Part(0, 7), "day_of_year": Part(1, 366),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Zone(Option):
    """A name of the IANA time zone database."""

    def takes(self) -> str:
        return "a name of the IANA time zone database, such as 'Europe/Berlin'"

    def read(self, given: Any) -> str | None:
        if given is not None and (not isinstance(given, str) or given not in names()):
            raise ValueError
        return given

    def names(self) -> Sequence[str]:
        return sorted(names())


OPTIONS = {
    "time": ColumnName(help="the time to read"),
    "parts": Several(of=Word(of=tuple(PARTS), help=""), least=1, most=len(PARTS), help="weekday 0 is Monday"),
    "cyclic": Flag(default=False, help="each as sine and cosine, so that hour 23 is near hour 0"),
    "zone": Zone(default=None, help="whose clock; default UTC"),
}
_MOMENTS = ["2026-11-22T02:10:59.999Z", "1969-12-31T23:59:59Z", "2024-02-29T12:00:00Z", "2026-03-29T00:59:59Z",
            "2026-03-29T01:00:00Z", "2026-10-25T00:59:59Z", "2026-10-25T01:00:00Z", "2000-12-31T23:30:00Z", None,
            "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]  # fmt: skip
_CELLS = [[each] for each in _MOMENTS]
_COLUMNS = {"x": {"kind": "time", "parse": "iso8601"}}
EXAMPLES: list[dict[str, Any]] = [
    {"columns": _COLUMNS, "cells": _CELLS,
     "table": {"time": "x", "parts": list(PARTS), "kind": "number", "missing": -1}},
    {"columns": _COLUMNS, "table": {"time": "x", "parts": list(PARTS)[1:], "cyclic": True, "zone": "Europe/Berlin",
                                    "missing": 0}, "cells": _CELLS},
    {"columns": _COLUMNS, "table": {"time": "x", "parts": ["day_of_year"], "zone": "America/New_York", "missing": 4,
                                    "embed": 2}, "cells": _CELLS},
    {"columns": {"x": {"kind": "time", "from": "timestamp"}},
     "table": {"time": "x", "parts": ["hour"], "role": "input", "kind": "number"}, "cells": [[1790000000000], [None]]},
    {"columns": {"x": {"role": "event_time"}}, "table": {"time": "x", "parts": ["second"], "missing": 7},
     "cells": [[1790000000123], [5]]},
]  # fmt: skip
class Time(Transform):
    takes = frozenset({TIME})

    def problems(self, use: Use) -> Iterator[str]:
        yield from super().problems(use)
        parts = use.given["parts"]
        if len(set(parts)) < len(parts):
            yield f"parts: expected each once, got {list(parts)}"
        elif use.given["cyclic"] and not all(PARTS[part].size for part in parts):
            yield f"parts: expected those that come again, got {list(parts)}"

    def results(self, use: Use) -> list[Result]:
        parts = use.given["parts"]
        if use.given["cyclic"]:
            return [Result(NUMBER, f"{part}_{side}") for part in parts for side in ("sin", "cos")]
        several = len(parts) > 1
        return [
            Result(NUMBER, part if several else "", sum(PARTS[part]) if PARTS[part].size else None) for part in parts
        ]

    def native_options(self, use: Use) -> dict[str, Any]:
        zone = use.given["zone"]
        options: dict[str, Any] = {"parts": list(use.given["parts"]), "cyclic": use.given["cyclic"]}
        return options if zone is None else {**options, "zone": instants(zone)}

TRANSFORM = Time()
