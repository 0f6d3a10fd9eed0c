"""Values of a program as a record can hold them: times in a column's unit, keys as bytes."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from streamtrain.columns.column import Column

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}  # microseconds
_MISSING_MARKS = ("NAType", "NaTType")  # pandas.NA and pandas.NaT


def plain(column: Column, value: Any) -> Any:
    """A number or a text for a value of another type; None where the column cannot take it, NaN where it is missing.

    A date is its first moment; one without a time zone is UTC, as in NumPy and pandas.
    """
    if column.role == "key":
        return str(value)
    return time(column.unit or "ms", value) if column.role == "event_time" else None


def time(unit: str, value: Any) -> int | float | None:
    """What a time counts in `unit` since 1970; None for what is no time."""
    if isinstance(value, np.datetime64):
        return float("nan") if np.isnat(value) else int(value.astype(f"datetime64[{unit}]").astype(np.int64))
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day, tzinfo=UTC)
    else:
        return None
    microseconds = (moment - _EPOCH) // _MICROSECOND
    if unit == "ns":
        return microseconds * 1_000 + getattr(value, "nanosecond", 0)
    whole, rest = divmod(microseconds, _PER_UNIT[unit])
    return whole + rest / _PER_UNIT[unit] if rest else whole


def times(unit: str, values: Any) -> Any:
    """An array of times as integers in `unit`; a list, with None for NaT, where one is missing."""
    counts = values.astype(f"datetime64[{unit}]").astype(np.int64)
    absent = np.isnat(values)
    return [None if gone else count for gone, count in zip(absent, counts.tolist(), strict=True)] if any(absent) else (
        counts
    )


def key_bytes(cell: Any) -> bytes | None:
    """The message key of a key column's cell: its text in UTF-8; None where it is missing."""
    if isinstance(cell, str):
        return cell.encode()
    if cell is None or isinstance(cell, bytes):
        return cell
    if isinstance(cell, np.generic):
        cell = cell.item()
    if (isinstance(cell, float) and cell != cell) or type(cell).__name__ in _MISSING_MARKS:
        return None
    return str(cell).encode()
