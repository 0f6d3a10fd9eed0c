"""The result of an oracle's parser: a record as plain values, as far as it can be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamtrain.columns.formats.parsed import Pairs


@dataclass
class Parsed:
    """One row (a map or a flat array), many, or (packed) columns; `broken`: why the rest cannot be read."""

    rows: list[Any] = field(default_factory=list)  # each a Pairs, a list, or what is no row at all
    many: bool = False
    broken: str | None = None
    columns: Pairs | None = None  # packed only: (name, values)
    row_count: int = 0  # packed only
    broken_field: str = ""  # of the row, where the format knows it
    maps_of_arrays: bool = True  # a row whose first column holds an array is columns
    written: bool = False  # all values are texts, of which a number is one too: Kind.written


def registry_frame(record: bytes) -> str | None:
    """Why a record is refused by a format of which none is empty or begins with a byte 0; None where it may be one."""
    if not record:
        return "expected a record, got an empty value"
    if record[0] == 0 and len(record) >= 5:
        return f"starts like a Schema Registry frame (0 and schema id {int.from_bytes(record[1:5], 'big')})"
    return None
