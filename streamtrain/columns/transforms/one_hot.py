"""A number for each of some values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamtrain.columns.transforms.transform import NUMBER, TEXT, Result, Transform, Use
from streamtrain.compute.options import ColumnName, Option, Several

HELP = "a number for each value, 1 where the cell is it, else 0: columns NAME_VALUE"


@dataclass(frozen=True, kw_only=True)
class Value(Option):
    """A text or a whole number."""

    def takes(self) -> str:
        return "a text or a whole number"

    def read(self, given: Any) -> str:
        if type(given) not in (str, int) or given == "":
            raise ValueError
        str(given).encode()
        return str(given)


OPTIONS = {
    "one_hot": ColumnName(help="the column to read"),
    "values": Several(of=Value(help=""), least=1, most=1_000, help="the values, in the order of their columns"),
}
EXAMPLES: list[dict[str, Any]] = [
    {"columns": {"x": {"kind": "category", "buckets": 3, "missing": "none"}},
     "table": {"one_hot": "x", "values": ["AA", "none", 7]}, "cells": [["AA"], [None], ["B6"], [7]]},
    {"columns": {"x": {"role": "input"}}, "table": {"one_hot": "x", "values": [0, -3], "missing": 0.5},
     "cells": [[0], [-3], [None], [0.5]]},
]  # fmt: skip


class OneHot(Transform):
    takes = frozenset({TEXT, NUMBER})

    def problems(self, use: Use) -> Iterator[str]:
        yield from super().problems(use)
        values = use.given["values"]
        if len(set(values)) < len(values):
            yield f"values: expected values that differ, got {list(values)}"
        elif any(source.holds == NUMBER for source in use.sources) and not all(map(_is_whole, values)):
            yield f"values: expected whole numbers of a column of numbers, got {list(values)}"

    def results(self, use: Use) -> list[Result]:
        return [Result(NUMBER, suffix=value) for value in use.given["values"]]

    def native_options(self, use: Use) -> dict[str, Any]:
        return {"values": list(use.given["values"])}

def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and text.isascii() and len(text) < 16


TRANSFORM = OneHot()
