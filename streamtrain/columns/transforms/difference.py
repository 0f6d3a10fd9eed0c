"""One number less another, or the time from one moment to another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamtrain.columns.transforms.transform import NUMBER, TIME, Transform, Use
from streamtrain.compute.options import ColumnName, Several, Word

HELP = "the first less the second: numbers, or times, of which it counts the unit from the second to the first"
UNIT_MS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
OPTIONS = {
    "difference": Several(of=ColumnName(help=""), least=2, most=2, help="the two columns: first less second"),
    "unit": Word(of=tuple(UNIT_MS), default="s", help="of times: what one counts"),
}
EXAMPLES: list[dict[str, Any]] = [
    {"columns": {"a": {}, "b": {"role": "input"}}, "table": {"difference": ["a", "b"], "missing": -1},
     "cells": [[3, 1], [0.1, 0.2], [5, None], [1e30, -1e300]]},
    *({"columns": {"a": {"kind": "time"}, "b": {"kind": "time", "parse": "iso8601"}},
       "table": {"difference": ["a", "b"], "unit": unit, "missing": -1},
       "cells": [[1790000000000, "2026-09-21T13:33:20Z"], [0, "1969-12-31T23:59:59.999Z"], [7, None]]}
      for unit in UNIT_MS),
]  # fmt: skip


class Difference(Transform):
    takes = frozenset({NUMBER, TIME})

    def problems(self, use: Use) -> Iterator[str]:
        yield from super().problems(use)
        first, second = use.sources
        if first.holds != second.holds:
            yield f"expected two numbers or two times, got {first.name}, a {first.holds}, and {second.name}"

    def native_options(self, use: Use) -> dict[str, Any]:
        return {"unit_ms": UNIT_MS[use.given["unit"]]}

TRANSFORM = Difference()
