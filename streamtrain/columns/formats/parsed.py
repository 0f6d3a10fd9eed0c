"""The result of a format's slow parser: a record as plain values, as far as it can be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Unusable:
    """A value that ends where it should but that no column can take: text that is not UTF-8, a binary. `path`: of a
    row, where it stands in its record."""

    reason: str
    path: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Binary(Unusable):
    """Bytes, which few columns can take."""

    raw: bytes = b""


@dataclass(frozen=True)
class TextHash:
    """The hash of a text, in its place: native/decode/text_hash.h."""

    value: int
    bits: int
    seed: int


class Moment(int):
    """A time since 1970 in a unit that the record tells: `unit` is milliseconds of one, as a fraction."""

    unit: tuple[int, int]

    def __new__(cls, count: int, unit: tuple[int, int]) -> Moment:
        cell = super().__new__(cls, count)
        cell.unit = unit
        return cell


class Pairs(list[tuple[Any, Any]]):
    """A map, in order, doubled keys and all."""


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
