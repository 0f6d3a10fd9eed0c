"""A number, or the nearer of two bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamtrain.columns.transforms.transform import Transform, Use
from streamtrain.compute.options import ColumnName, Number

HELP = "x, or the nearer of two bounds"
_MOST = 1.7e308
OPTIONS = {
    "clip": ColumnName(help="the column to read"),
    "low": Number(default=-_MOST, least=-_MOST, most=_MOST, help="the least there is"),
    "high": Number(default=_MOST, least=-_MOST, most=_MOST, help="the most there is"),
}
EXAMPLES: list[dict[str, Any]] = [
    {"columns": {"x": {}}, "table": {"clip": "x", "low": 0, "high": 10.5}, "cells": [[-1], [0], [5.5], [10.5], [11]]},
    {"columns": {"x": {"role": "input"}}, "table": {"clip": "x", "high": 3, "missing": 2},
     "cells": [[-1e30], [None], [3], [1e300]]},
]  # fmt: skip


class Clip(Transform):
    def problems(self, use: Use) -> Iterator[str]:
        yield from super().problems(use)
        if use.given["low"] >= use.given["high"]:
            yield f"high: expected a number above low, {use.given['low']:g}, got {use.given['high']:g}"

TRANSFORM = Clip()
