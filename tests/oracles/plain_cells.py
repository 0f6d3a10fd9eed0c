"""Columns as a program holds them → plain Python values, for the formats that write values one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def plain_columns(columns: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Each column as a list of None, bool, int, float and str; masked entries become None."""
    return {name: plain(column) for name, column in columns.items()}


def plain(column: Any) -> list[Any]:
    if isinstance(column, np.ndarray):  # a masked array's tolist gives None
        return list(column.tolist())
    return [cell.item() if isinstance(cell, np.generic) else cell for cell in column]


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
