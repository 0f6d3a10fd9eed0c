"""One part of a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamtrain.columns.transforms.transform import TEXT, Result, Transform, Use
from streamtrain.compute.options import ColumnName, Option, Whole

HELP = "one part of a text between separators, counted from 0, or from -1 at its end; missing where there is none"


@dataclass(frozen=True, kw_only=True)
class Separator(Option):
    """A text that is not empty."""

    def takes(self) -> str:
        return "a text of 1 to 100 characters"

    def read(self, given: Any) -> str:
        if not isinstance(given, str) or not 1 <= len(given) <= 100:
            raise ValueError
        given.encode()
        return given


OPTIONS = {
    "split": ColumnName(help="the column to read"),
    "by": Separator(help="the separator between parts"),
    "part": Whole(least=-1000, most=1000, default=0, help="number of the part: from 0, or from -1 at the end"),
}
EXAMPLES: list[dict[str, Any]] = [
    {"columns": {"x": {"role": "input", "kind": "category"}},
     "table": {"split": "x", "by": by, "part": part, "buckets": 5000, "missing": "none"},
     "cells": [["a/b/c"], ["a"], ["/b"], ["a//"], [None], ["aXYbXYc/"], ["\u00e9/\U0001f6eb"]]}
    for by, part in (("/", 0), ("/", 1), ("/", -1), ("XY", 1), ("/", -3), ("/", 7))
]  # fmt: skip


class Split(Transform):
    takes = frozenset({TEXT})

    def results(self, use: Use) -> list[Result]:
        return [Result(TEXT)]

    def native_options(self, use: Use) -> dict[str, Any]:
        return {"by": use.given["by"], "part": use.given["part"]}

TRANSFORM = Split()
