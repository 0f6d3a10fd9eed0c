"""Cells as numbers, and texts that stand for numbers and booleans: what several kinds read."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np

from streamtrain.columns.column import Column
from streamtrain.columns.kinds.amounts import plain
from streamtrain.columns.kinds.kind import LARGEST, as_text
from streamtrain.columns.kinds.parsed import BOOL, CONNECT_DECIMAL, connect_decimal, has_one_text, is_connect
from tests.oracles.kinds import Cell, Oracle, Wrong

_POINTS = {"decimal": "", "amount": ".", "decimal_comma": ","}  # what stands before an amount's fraction
_NUMBER = re.compile(r" *[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)? *")
_WHOLE = re.compile(r" *[+-]?[0-9]+ *")
_TRUE, _FALSE = ("true", "t", "yes", "y", "on"), ("false", "f", "no", "n", "off")


class NumberOracle(Oracle):
    """The slow half of kinds whose cells are numbers."""

    def written(self, column: Column, loss: str, text: str) -> float:
        return number_in(column, text)


def float32(value: Cell) -> np.float32:
    """Returns a number whose square fits float32. Wrong for any other, and for text."""
    if isinstance(value, str) or not abs(value) < 1e38:  # as float() takes it
        raise Wrong
    rounded = np.float32(value)
    if not abs(rounded) <= LARGEST:
        raise Wrong
    return rounded


def whole(value: float) -> int | None:
    """Returns the integer that a number is: integers, and floats below 2^53 without a fraction."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else None
    return int(value)


def text_of(value: Cell) -> str:
    """Returns the text of a category's or a class's cell. Wrong for a fraction."""
    if isinstance(value, str | bool):
        return as_text(value)
    found = whole(value)
    if found is None:
        raise Wrong
    return str(found)


def number_of(column: Column, cell: Cell) -> Cell:
    """Returns the number of a text that the column parses; any other cell as it is. Wrong for a text that is none."""
    parses = column.parse in _POINTS or is_connect(column.parse)
    return number_in(column, cell) if isinstance(cell, str) and parses else cell


def number_in(column: Column, text: str) -> float:
    """Returns the number that a text is, as the column writes numbers. Wrong if it is none."""
    if is_connect(column.parse):
        return float(_connect(column, text))
    point = _POINTS.get(column.parse or "", "")
    found = plain(text, point) if point else text
    if found is None:
        raise Wrong
    return decimal(found)


def decimal(text: str) -> float:
    """Returns the number that a text is. Wrong if it is none."""
    if _NUMBER.fullmatch(text) is None:
        raise Wrong
    number = float(text)
    return number if number or any(sign in text for sign in ".eE") else 0.0  # a whole number has no negative zero


def one_text(column: Column, cell: Cell) -> Cell:
    """Returns the boolean or the whole number of a category's cell, where the column parses it. Wrong if it is none."""
    if column.parse == BOOL:
        return _boolean(cell)
    if is_connect(column.parse) and isinstance(cell, str):
        found = _connect(column, cell)
        if found != found.to_integral_value():
            raise Wrong
        return int(found)
    return _whole(cell) if has_one_text(column.parse) else cell


def _connect(column: Column, text: str) -> Decimal:
    found = connect_decimal(text, int(column.parse.removeprefix(f"{CONNECT_DECIMAL}:")))
    if found is None:
        raise Wrong
    return found


def _boolean(cell: Cell) -> bool:
    word = cell.strip(" ").lower() if isinstance(cell, str) and cell.isascii() else ""
    if word in (*_TRUE, *_FALSE):
        return word in _TRUE
    number = decimal(cell) if isinstance(cell, str) else cell
    if number not in (0, 1):
        raise Wrong
    return bool(number)


def _whole(cell: Cell) -> int:
    if isinstance(cell, str) and _WHOLE.fullmatch(cell):
        return int(cell)
    found = whole(decimal(cell) if isinstance(cell, str) else cell)
    if found is None:
        raise Wrong
    return found
