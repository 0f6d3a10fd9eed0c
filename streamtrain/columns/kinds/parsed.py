"""Cells that are written as text and mean something else: a setting of numbers and times."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import Field

from streamtrain.columns.kinds.cell import Cell
from streamtrain.columns.kinds.kind import Kind, Settings, Wrong

DECIMAL = "decimal"
_NUMBER = re.compile(r" *[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)? *")


class Parsed(Settings):
    """A column whose cells may be text."""

    parse: str | None = Field(
        None,
        description=(
            "of cells that are text: decimal for a number; iso8601 for a time, or its format, such as "
            "'%d/%m/%Y %H:%M'; off by default"
        ),
        json_schema_extra={"misplaced": "only a number or a time can be parsed"},
    )


def number_problems(column: Parsed) -> Iterator[str]:
    """What is wrong with how a number is parsed."""
    if column.parse not in (None, DECIMAL):
        yield f'parse: expected "{DECIMAL}" for a number, got "{column.parse}"'


P = TypeVar("P", bound=Parsed)


class NumberKind(Kind[P]):
    """Kinds whose cells are numbers and become float32."""

    def problems(self, column: P) -> Iterator[str]:
        yield from number_problems(column)

    def native_options(self, column: P, loss: str) -> dict[str, Any]:
        return {"parse": column.parse or ""}

    def written(self, column: P, loss: str, text: str) -> float:
        return decimal(text)

    def is_float(self, column: P) -> bool:
        return True

    def takes_text(self, column: P) -> bool:
        return column.parse is not None

    def is_numeric(self, column: P) -> bool:
        return True


def number_of(column: Parsed, cell: Cell) -> Cell:
    """A text as the number that it is, where the column parses it; any other cell as it is. Wrong where it is none."""
    if not isinstance(cell, str) or column.parse is None:
        return cell
    return decimal(cell)


def decimal(text: str) -> float:
    """The number that a text is. Wrong where it is none."""
    if _NUMBER.fullmatch(text) is None:
        raise Wrong
    number = float(text)
    return number if number or any(sign in text for sign in ".eE") else 0.0  # a whole number has no negative zero
