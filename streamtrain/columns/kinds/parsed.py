"""Cells that are written as text and mean something else: a setting of numbers, times, categories and labels."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, TypeVar

from pydantic import Field

from streamtrain.columns.kinds.amounts import plain
from streamtrain.columns.kinds.cell import Cell, whole
from streamtrain.columns.kinds.kind import Kind, Settings, Wrong

DECIMAL, AMOUNT, DECIMAL_COMMA = "decimal", "amount", "decimal_comma"
NUMBERS = {DECIMAL: "", AMOUNT: ".", DECIMAL_COMMA: ","}  # with what stands before an amount's fraction
BOOL, NUMBER = "bool", "number"
ONE_TEXT = (BOOL, NUMBER)  # of categories and classes, so that a value has one text
CONNECT_DECIMAL = "connect_decimal"
_CONNECT = re.compile(rf"{CONNECT_DECIMAL}:(-?[0-9]{{1,3}})")
MOST_DECIMAL_BYTES = 32  # 76 digits
_NUMBER = re.compile(r" *[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)? *")
_WHOLE = re.compile(r" *[+-]?[0-9]+ *")
_TRUE, _FALSE = ("true", "t", "yes", "y", "on"), ("false", "f", "no", "n", "off")


class Parsed(Settings):
    """A column whose cells may be text."""

    parse: str | None = Field(
        None,
        description=(
            "of cells that are text: decimal for a number, amount for one with thousands, currency, percent or "
            "parentheses ('$1,234.50'; '12 %' is 12), decimal_comma for '1.234,5', connect_decimal:2 for a decimal of "
            "Kafka Connect of scale 2, as base64; iso8601 for a time, or its format, such as '%d/%m/%Y %H:%M'; bool or "
            "number for a category or a class, so that True, true and 1, or 1.0 and 1, are one value; off by default"
        ),
        json_schema_extra={"misplaced": "only a number, a time, a category or a label can be parsed"},
    )


def number_problems(column: Parsed) -> Iterator[str]:
    """Yields what is wrong with the `parse` of a number."""
    if column.parse is not None and column.parse not in NUMBERS and not is_connect(column.parse):
        yield f'parse: expected {_one_of(NUMBERS)} for a number, got "{column.parse}"'


def one_text_problems(column: Parsed) -> Iterator[str]:
    """Yields what is wrong with the `parse` of a category."""
    if column.parse is not None and not has_one_text(column.parse):
        yield f'parse: expected {_one_of(ONE_TEXT)} for a category, got "{column.parse}"'


def _one_of(words: Iterable[str]) -> str:
    return f"one of {', '.join(words)} or {CONNECT_DECIMAL}:SCALE"


def scale_of(parse: str | None) -> int | None:
    """Returns the scale of a decimal of Kafka Connect; None where `parse` reads no such decimal."""
    found = _CONNECT.fullmatch(parse or "")
    return int(found[1]) if found else None


def is_connect(parse: str | None) -> bool:
    """Returns whether `parse` reads decimals of Kafka Connect."""
    return scale_of(parse) is not None


def has_one_text(parse: str | None) -> bool:
    """Returns whether `parse` gives a category or a class the same text for every writing of a value."""
    return parse in ONE_TEXT or is_connect(parse)


P = TypeVar("P", bound=Parsed)


class NumberKind(Kind[P]):
    """Kinds whose cells are numbers and become floats."""

    def problems(self, column: P) -> Iterator[str]:
        yield from number_problems(column)

    def native_options(self, column: P, loss: str) -> dict[str, Any]:
        return {"parse": column.parse or ""}

    def written(self, column: P, loss: str, text: str) -> float:
        return number_in(column, text)

    def is_float(self, column: P) -> bool:
        return True

    def takes_text(self, column: P) -> bool:
        return column.parse is not None

    def is_numeric(self, column: P) -> bool:
        return True

    def has_missing_words(self, column: P) -> bool:
        return not is_connect(column.parse)


def number_of(column: Parsed, cell: Cell) -> Cell:
    """A text as the number that it is, where the column parses it; any other cell as it is. Wrong where it is none."""
    if not isinstance(cell, str) or not (column.parse in NUMBERS or is_connect(column.parse)):
        return cell
    return number_in(column, cell)


def number_in(column: Parsed, text: str) -> float:
    """The number that a text is, as the column writes numbers. Wrong where it is none."""
    if (scale := scale_of(column.parse)) is not None:
        return float(connect_decimal(text, scale))
    point = NUMBERS.get(column.parse or DECIMAL, "")
    return decimal(text) if not point else amount(text, point)


def amount(text: str, point: str) -> float:
    """The number that an amount is, with `point` before its fraction. Wrong where it is none."""
    found = plain(text, point)
    if found is None:
        raise Wrong
    return decimal(found)


def connect_decimal(text: str, scale: int) -> Decimal:
    """The decimal that base64 of a big-endian two's complement integer is, over 10^scale. Wrong where it is none."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Wrong from None
    if not 0 < len(raw) <= MOST_DECIMAL_BYTES:
        raise Wrong
    return Decimal(f"{int.from_bytes(raw, 'big', signed=True)}e{-scale}")


def decimal(text: str) -> float:
    """The number that a text is. Wrong where it is none."""
    if _NUMBER.fullmatch(text) is None:
        raise Wrong
    number = float(text)
    return number if number or any(sign in text for sign in ".eE") else 0.0  # a whole number has no negative zero


def one_text(column: Parsed, cell: Cell) -> Cell:
    """The boolean or the whole number that stands for a category's cell, where the column says so. Wrong for none."""
    if column.parse == BOOL:
        return _boolean(cell)
    if (scale := scale_of(column.parse)) is not None and isinstance(cell, str):
        found = connect_decimal(cell, scale)
        if found != found.to_integral_value():
            raise Wrong
        return int(found)
    return _whole(cell) if has_one_text(column.parse) else cell


def is_boolean_word(text: str) -> bool:
    """Returns whether a text is a word for true or false, and no number."""
    return text.isascii() and text.strip(" ").lower() in (*_TRUE, *_FALSE)


def is_value(text: str) -> bool:
    """Returns whether a text is a number, as any column writes it, or a word for true or false."""
    return is_boolean_word(text) or any(plain(text, point) is not None for point in (".", ","))


def _boolean(cell: Cell) -> bool:
    if isinstance(cell, str) and is_boolean_word(cell):
        return cell.strip(" ").lower() in _TRUE
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
