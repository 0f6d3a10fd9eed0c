"""The result of a format's slow parser: a record as plain values, as far as it can be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Unusable:
    """A value that ends where it should but that no column can take: text that is not UTF-8, a binary."""

    reason: str


@dataclass(frozen=True)
class Binary(Unusable):
    """Bytes, which few columns can take."""

    raw: bytes = b""


class Pairs(list[tuple[Any, Any]]):
    """A map, in order, doubled keys and all."""


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


class BrokenRecord(Exception):
    """The bytes are not of the format from here on."""


MISSING_ENTRY = object()  # a packed null


def contains_unusable(value: Any) -> bool:
    """Returns True if a value, or anything inside it, is Unusable."""
    if isinstance(value, Pairs):
        return any(contains_unusable(key) or contains_unusable(inner) for key, inner in value)
    if isinstance(value, list):
        return any(contains_unusable(inner) for inner in value)
    return isinstance(value, Unusable)


def registry_frame(record: bytes) -> str | None:
    """Why a record is refused by a format of which none is empty or begins with a byte 0; None where it may be one."""
    if not record:
        return "expected a record, got an empty value"
    if record[0] == 0 and len(record) >= 5:
        return f"starts like a Schema Registry frame (0 and schema id {int.from_bytes(record[1:5], 'big')})"
    return None
