"""Columns as a program holds them → plain Python values, for the formats that write values one by one."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import numpy as np

from streamtrain.errors import UserMistake


def plain_columns(columns: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Each column as a list of None, bool, int, float and str; masked entries become None."""
    return {name: plain(column) for name, column in columns.items()}


def plain(column: Any) -> list[Any]:
    if isinstance(column, np.ndarray):  # a masked array's tolist gives None
        return list(column.tolist())
    return [cell.item() if isinstance(cell, np.generic) else cell for cell in column]


def each_row(
    format: str, rows: Sequence[Any], columns: Container[str], write: Callable[[dict[str, Any]], bytes]
) -> list[bytes]:
    """Rows by name, each as `write` writes it; "" of a column is missing.

    UserMistake for what is no such row, and for the (field, expected, got) of `write`'s ValueError.
    """
    found = []
    for row in rows:
        if not isinstance(row, Mapping):
            raise UserMistake(f"{format}: expected rows with names, got {type(row).__name__}")
        try:
            found.append(write({name: None if each == "" and name in columns else each for name, each in row.items()}))
        except ValueError as error:
            field, expected, got = error.args
            raise UserMistake(f"{format}: {field}: expected {expected}, got {got}") from None
    return found


def is_empty(value: Any) -> bool:
    """Nothing, or a map of nothing but that: a record none of whose columns has a cell."""
    return value is None or (isinstance(value, dict) and bool(value) and all(map(is_empty, value.values())))


class Symbol(int):
    """An enum's number, and its name; "" of one without."""

    name: str

    def __new__(cls, number: int, name: str) -> Symbol:
        cell = super().__new__(cls, number)
        cell.name = name
        return cell
