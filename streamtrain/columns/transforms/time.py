"""Parts of a time: numbers, categories with a bucket each, or points on a circle."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from streamtrain.columns.kinds.zones import instants, names, shift_s
from streamtrain.columns.transforms.transform import NUMBER, TIME, Cell, Result, Transform, Use
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
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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

    def meaning(self, use: Use, cells: Sequence[Cell], given: Sequence[bool]) -> list[Cell]:
        parts = use.given["parts"]
        if cells[0] is None:
            return [None] * (len(parts) * (2 if use.given["cyclic"] else 1))
        numbers = split_time(int(cells[0]), use.given["zone"])
        if not use.given["cyclic"]:
            return [float(numbers[part]) for part in parts]
        return [side for part in parts for side in turn(numbers[part] - PARTS[part].first, PARTS[part].size)]


def split_time(ms: int, zone: str | None) -> dict[str, int]:
    """The parts of a moment."""
    seconds = ms // 1000
    seconds += 0 if zone is None else shift_s(zone, seconds)
    days, of_day = divmod(seconds, 86_400)
    eras = (days + 719_162) // 146_097 - 4  # of 400 years, by which the calendar repeats: datetime ends at year 9999
    there = _EPOCH + timedelta(days=days - eras * 146_097)
    return {
        "year": there.year + eras * 400, "month": there.month, "day": there.day, "hour": of_day // 3600,
        "minute": of_day // 60 % 60, "second": of_day % 60, "weekday": there.weekday(),
        "day_of_year": there.timetuple().tm_yday,
    }  # fmt: skip


def turn(part: int, count: int) -> tuple[float, float]:
    """Sine and cosine of so many parts of a turn; exact where a side is 0 or 1."""
    octant, rest = divmod(8 * (part % count), count)
    angle = (count - rest if octant & 1 else rest) / count * (math.pi / 4)
    sine, cosine = math.sin(angle), math.cos(angle)
    if octant in (1, 2, 5, 6):
        sine, cosine = cosine, sine
    return -sine if octant >= 4 else sine, -cosine if octant in (2, 3, 4, 5) else cosine


TRANSFORM = Time()
