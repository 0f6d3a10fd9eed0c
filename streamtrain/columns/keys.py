"""Keys of a program as a record can hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

_MISSING_MARKS = ("NAType", "NaTType")  # pandas.NA and pandas.NaT


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
