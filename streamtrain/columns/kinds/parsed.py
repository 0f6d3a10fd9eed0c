"""Cells that are written as text and mean something else: a setting of numbers, times, categories and labels."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from pydantic import Field

from streamtrain import _native
from streamtrain.columns.kinds.amounts import plain
from streamtrain.columns.kinds.kind import Kind, Settings

DECIMAL, AMOUNT, DECIMAL_COMMA = "decimal", "amount", "decimal_comma"
NUMBERS = {DECIMAL: "", AMOUNT: ".", DECIMAL_COMMA: ","}  # with what stands before an amount's fraction
BOOL, NUMBER = "bool", "number"
ONE_TEXT = (BOOL, NUMBER)  # of categories and classes, so that a value has one text
CONNECT_DECIMAL = "connect_decimal"
_CONNECT = re.compile(rf"{CONNECT_DECIMAL}:-?[0-9]{{1,3}}")
_MOST_DECIMAL_BYTES = 32  # 76 digits
_MISSING_WORDS = frozenset(_native.MISSING_WORDS)  # in texts of numbers and times: native/decode/missing_words.h
_BOOLEANS = ("true", "t", "yes", "y", "on", "false", "f", "no", "n", "off")


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


def is_connect(parse: str | None) -> bool:
    """Returns whether `parse` reads decimals of Kafka Connect."""
    return _CONNECT.fullmatch(parse or "") is not None


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

    def is_float(self, column: P) -> bool:
        return True

    def takes_text(self, column: P) -> bool:
        return column.parse is not None

    def is_numeric(self, column: P) -> bool:
        return True

    def has_missing_words(self, column: P) -> bool:
        return not is_connect(column.parse)


def connect_decimal(text: str, scale: int) -> Decimal | None:
    """The decimal that base64 of a big-endian two's complement integer is, over 10^scale; None for other texts."""
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    if not 0 < len(raw) <= _MOST_DECIMAL_BYTES:
        return None
    return Decimal(f"{int.from_bytes(raw, 'big', signed=True)}e{-scale}")


def is_missing(cell: Any, more: Sequence[str] = ()) -> bool:
    """Returns whether a cell is a word for a missing value, with or without spaces around it, or nothing but spaces."""
    if not isinstance(cell, str):
        return False
    word = cell.strip(" ")
    return not word or word in _MISSING_WORDS or word in more


def is_value(text: str) -> bool:
    """Returns whether a text is a number, as any column writes it, or a word for true or false."""
    is_boolean = text.isascii() and text.strip(" ").lower() in _BOOLEANS
    return is_boolean or any(plain(text, point) is not None for point in (".", ","))
