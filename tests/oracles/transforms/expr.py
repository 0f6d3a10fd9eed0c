"""An expression of columns: its operations one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

from streamtrain.columns.expression import FUNCTIONS, Operation, Program, compiled
from streamtrain.columns.transforms.transform import Use
from tests.oracles.transforms import Cell, finite

_FORMULAS: dict[str, Callable[[float, float], float | bool]] = {
    "negate": lambda a, b: -a, "add": lambda a, b: a + b, "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b, "divide": lambda a, b: a / b if b else math.nan, "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b, "equal": lambda a, b: a == b, "opposite": lambda a, b: 1 - a,
    "absolute": lambda a, b: abs(a), "least": lambda a, b: a if a < b else b, "most": lambda a, b: a if a > b else b,
    "root": lambda a, b: math.sqrt(a) if a >= 0 else math.nan, "floor": lambda a, b: math.floor(a),
    "log": lambda a, b: math.log(a) if a > 0 else math.nan,
    "exp": lambda a, b: math.exp(a) if a < 709.7 else math.nan,
}  # fmt: skip
_ONE_SIDED = {"negate", "opposite", *(code for code, count in FUNCTIONS.values() if count == 1)}


def meaning(use: Use, cells: Sequence[Cell], given: Sequence[bool]) -> list[Cell]:
    program = _compiled(use.given["expr"], tuple((source.name, source.holds) for source in use.sources))
    return [value_of(program, cells, given)]


@cache  # of every row
def _compiled(text: str, holds: tuple[tuple[str, str], ...]) -> Program:
    return compiled(text, dict(holds))


def value_of(program: Program, cells: Sequence[Cell], given: Sequence[bool]) -> float | None:
    """Returns the program's value over one row's cells; None: missing."""
    values: list[float | None] = []
    for each in program.operations:
        values.append(_one(each, program, values, cells, given))
    return values[-1]


def _one(
    of: Operation, program: Program, values: Sequence[float | None], cells: Sequence[Cell], given: Sequence[bool]
) -> float | None:
    if of.code == "number":
        cell = cells[of.first]
        return None if cell is None else float(cell)
    if of.code == "constant":
        return program.numbers[of.first]
    if of.code == "given":
        return float(given[of.first])
    if of.code in ("text_is", "same_text"):
        texts = cells[of.first], program.texts[of.second] if of.code == "text_is" else cells[of.second]
        return None if None in texts else float(texts[0] == texts[1])
    a, b = values[of.first], values[of.second]
    if of.code in ("both", "either"):
        decides = float(of.code == "either")
        return decides if decides in (a, b) else None if None in (a, b) else 1 - decides
    if of.code == "otherwise":
        return b if a is None else a
    if a is None or (b is None and of.code not in _ONE_SIDED):
        return None
    return finite(float(_FORMULAS[of.code](a, 0.0 if b is None else b)))
