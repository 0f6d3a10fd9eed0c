"""Rows as programs hold them (a dict, a list of dicts, a dict of arrays, a frame) as columns of plain values.

A cell is missing where it is None or NaN, or where its dict lacks it; an infinite number is a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from streamtrain.errors import UserMistake

Columns = dict[str, list[Any]]
_PLAIN = frozenset((int, str, bool))


def columns_of(rows: Any) -> tuple[Columns, int, bool]:
    """The columns, how many rows, and whether it was one row alone.

    Raises UserMistake for what is none of the forms, columns of differing lengths, and infinite numbers.
    """
    if type(rows) is dict and all(_is_plain(value) for value in rows.values()):  # the common case, quickly
        return {str(name): [value] for name, value in rows.items()}, 1, True
    single = False
    if hasattr(rows, "to_pydict"):  # a pyarrow table or batch
        columns = dict(rows.to_pydict())
    elif hasattr(rows, "columns") and hasattr(rows, "__getitem__") and not isinstance(rows, Mapping):  # a frame
        columns = {str(name): rows[name] for name in rows.columns}
    elif isinstance(rows, Mapping):
        arrays = [name for name, value in rows.items() if _is_array(value)]
        if arrays and len(arrays) < len(rows):
            alone = next(name for name in rows if name not in arrays)
            raise UserMistake(
                f"rows: expected all arrays or all single values, got an array in {arrays[0]!r}, none in {alone!r}"
            )
        single = not arrays
        columns = {str(name): [value] if single else value for name, value in rows.items()}
    elif isinstance(rows, Sequence) and not isinstance(rows, str | bytes):
        columns = _from_dicts(rows)
    else:
        raise UserMistake(
            f"rows: expected a dict, a list of dicts, a dict of arrays or a frame, got {type(rows).__name__}"
        )
    made = {name: _cells(name, values) for name, values in columns.items()}
    lengths = {len(cells) for cells in made.values()}
    if len(lengths) > 1:
        raise UserMistake(f"rows: expected columns of one length, got { ({n: len(c) for n, c in made.items()}) }")
    return made, lengths.pop() if lengths else 0, single


def _is_plain(value: Any) -> bool:
    kind = type(value)
    return kind in _PLAIN or (kind is float and isfinite(value)) or value is None


def _is_array(value: Any) -> bool:
    return (
        isinstance(value, list | tuple | np.ndarray) and not (isinstance(value, np.ndarray) and value.ndim == 0)
    ) or (hasattr(value, "__array__") and hasattr(value, "__len__"))


def _from_dicts(rows: Sequence[Any]) -> Columns:
    columns: Columns = {}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise UserMistake(f"rows[{number}]: expected a dict, got {type(row).__name__}")
        for name in row:
            if name not in columns:
                columns[name] = [None] * len(rows)
    for number, row in enumerate(rows):
        for name, value in row.items():
            columns[name][number] = value
    return columns


def _cells(name: str, values: Any) -> list[Any]:
    array = np.asarray(values) if hasattr(values, "__array__") else None
    if array is not None and array.ndim != 1:
        raise UserMistake(f"rows: column {name!r}: expected one value a row, got an array of shape {array.shape}")
    return [_cell(name, value) for value in (array.tolist() if array is not None else values)]


def _cell(name: str, value: Any) -> Any:
    if type(value) in (int, str, bool) or value is None:
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if value != value:
            return None
        if value in (float("inf"), float("-inf")):
            raise UserMistake(f"rows: column {name!r}: expected a finite number, got {value}")
    elif value is not None and not isinstance(value, int | str | bool | bytes) and value != value:  # pandas.NaT
        return None
    return value
