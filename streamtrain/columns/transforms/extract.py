"""The part of a text that a pattern finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamtrain.columns.patterns import compiled
from streamtrain.columns.transforms.transform import TEXT, Result, Transform, Use
from streamtrain.compute.options import ColumnName, Option, Whole

HELP = "the part of a text that a pattern finds first, or one group of it; missing where there is none"
MOST_GROUPS = 99


@dataclass(frozen=True, kw_only=True)
class PatternText(Option):
    """A pattern as columns/patterns.py takes it."""

    def takes(self) -> str:
        return "a pattern of letters, ., [ ], ( ), |, *, +, ?, {m,n}, ^ and $"

    def read(self, given: Any) -> str:
        if not isinstance(given, str) or not given:
            raise ValueError
        return given


OPTIONS = {
    "extract": ColumnName(help="the column to read"),
    "pattern": PatternText(help="a regular expression without what refers back or looks around: time is linear"),
    "group": Whole(least=0, most=MOST_GROUPS, default=0, help="number of the group in ( ) to take; 0: the whole match"),
}
_CELLS = [["ab12-cd"], ["12-ab-345"], ["-"], [None], ["AA 7\n"], ["\u00e9\U0001f6eb9"], [77], ["xay"], ["aaa"]]
EXAMPLES: list[dict[str, Any]] = [
    {"columns": {"x": {"role": "input", "kind": "category"}},
     "table": {"extract": "x", "pattern": pattern, "group": group, "buckets": 5000, "missing": "none"}, "cells": _CELLS}
    for pattern, group in (
        (r"\d+", 0), (r"(\w+?)-(\w*)", 2), (r"^[^\d-]+$", 0), (r"(?:a|(ab))(c|bcd|\d)?", 1), ("a{2,3}?|x.", 0),
        (r"\s|\S$", 0),
    )
]  # fmt: skip


class Extract(Transform):
    takes = frozenset({TEXT})

    def problems(self, use: Use) -> Iterator[str]:
        yield from super().problems(use)
        try:
            groups = compiled(use.given["pattern"], use.given["group"]).groups
        except ValueError as error:
            yield f"pattern: {error}"
            return
        if use.given["group"] > groups:
            yield f"group: expected at most {groups}, the pattern's groups, got {use.given['group']}"

    def results(self, use: Use) -> list[Result]:
        return [Result(TEXT)]

    def native_options(self, use: Use) -> dict[str, Any]:
        program = compiled(use.given["pattern"], use.given["group"]).program
        steps = [int(number) for step in program.steps for number in step]
        return {"program": steps, "ranges": [bound for each in program.ranges for bound in each]}

TRANSFORM = Extract()
