"""The key of a record: read by the producer alone, passed over by decoders."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.columns.kinds import category
from streamtrain.columns.kinds.kind import Kind

HELP = "the record's key, for the producer"
_MISSING_MARKS = ("NAType", "NaTType")  # pandas.NA and pandas.NaT


class Options(category.Options):
    """A key may be called a category too: what it says of buckets is passed over."""


class Key(Kind[Options]):
    role = "key"
    in_requests = "ignored"
    decoded = False
    beside = None
    options = Options

    def missing_problem(self, column: Options) -> str | None:
        return "a key column is only read by the producer; remove it"

    def takes_text(self, column: Options) -> bool:
        return True

    def plain(self, column: Options, value: Any) -> Any:
        return str(value)


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


KIND = Key()
