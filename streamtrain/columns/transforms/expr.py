"""An expression of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from streamtrain.columns.expression import FUNCTIONS, Program, columns_of, compiled
from streamtrain.columns.expression import problems as expression_problems
from streamtrain.columns.transforms.transform import HASH, NUMBER, TEXT, TIME, Result, Transform, Use
from streamtrain.compute.options import Option


@dataclass(frozen=True, kw_only=True)
class Expression(Option):
    """A text that columns.expression reads."""

    def takes(self) -> str:
        return "an expression such as 'a * b - c / d'"

    def read(self, given: Any) -> str:
        if not isinstance(given, str) or not given.strip():
            raise ValueError
        return given


HELP = "a * b - c / d, a > 0 and b != 'x', (a - b) / max(c, 1); missing where it divides by zero"
_KNOWN = ", ".join(FUNCTIONS)
OPTIONS = {"expr": Expression(help=f"of columns: + - * /, comparisons, and, or, not, in, is missing, {_KNOWN}")}
_NUMBERS = {"x": {}, "y": {"role": "input"}}
_CELLS = [[1, 2], [0, 0], [-3.5, None], [2, -1], [1e30, 1e300], [7, 7], [0.1, 0.2]]
EXAMPLES: list[dict[str, Any]] = [
    *({"columns": _NUMBERS, "table": {"expr": text, "missing": -1}, "cells": _CELLS} for text in (
        "x * y - x / y", "(x + 1) / (y - 2)", "x < y", "x > 0 and y > 0", "not (x >= 1 or y <= 0)", "-x + +y * 2",
        "y is missing", "y is not missing and x != 7", "0 <= x < 3", "x in (1, 2, 7)", "abs(x) + max(x, y) - min(x, 3)",
        "sqrt(x) + log(x) + exp(x / 10) + floor(y)", "otherwise(y, 5)", "1e308 * y", "3", "x == y or y is missing")),
    *({"columns": {"a": {"kind": "category", "buckets": 9, "missing": "none"},
                   "b": {"role": "input", "kind": "category"}},
       "table": {"expr": text, "missing": 0.5},
       "cells": [["AA", "AA"], ["AA", "b"], [None, "none"], ["x", None], [7, 7]]}
      for text in ("a == 'AA'", "a == b", "'AA' != b", "a in ('x', 'none') and b not in ('b',)", "b is missing")),
]  # fmt: skip


class Expr(Transform):
    takes = frozenset({NUMBER, TEXT, TIME, HASH})  # which fits where, the expression says

    def reads(self, options: Mapping[str, Option], given: Mapping[str, Any]) -> list[str]:
        return columns_of(given["expr"])

    def problems(self, use: Use) -> Iterator[str]:
        for problem in expression_problems(use.given["expr"], {source.name: source.holds for source in use.sources}):
            yield f"expr: {problem}"

    def results(self, use: Use) -> list[Result]:
        return [Result(NUMBER)]

    def native_options(self, use: Use) -> dict[str, Any]:
        program = self._program(use)
        return {
            "codes": [each.code for each in program.operations],
            "first": [each.first for each in program.operations],
            "second": [each.second for each in program.operations],
            **({"numbers": program.numbers} if program.numbers else {}),
            **({"texts": program.texts} if program.texts else {}),
        }

    @staticmethod
    def _program(use: Use) -> Program:
        return _compiled(use.given["expr"], tuple((source.name, source.holds) for source in use.sources))


@cache
def _compiled(text: str, holds: tuple[tuple[str, str], ...]) -> Program:
    return compiled(text, dict(holds))


TRANSFORM = Expr()
