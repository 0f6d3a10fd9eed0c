"""Protobuf's wire: numbers of variable length, and the fields of a message one after the other.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain.columns.formats.parsed import BrokenRecord

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5  # wire types; 3 and 4 are groups, which no schema has any more
_FIXED_BYTES = {FIXED64: 8, FIXED32: 4}
_MOST_TAG = 1 << 32


class Wire:
    """Reads from the front to the back of some bytes; BrokenRecord where they end, or are none."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def more(self, end: int) -> bool:
        return self.at < end

    def varint(self, end: int) -> int:
        raw = 0
        for i in range(10):
            if self.at == end:
                raise BrokenRecord("the record ends inside a number")
            byte = self._data[self.at]
            if i == 9 and byte > 1:
                break
            self.at += 1
            raw |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                return raw
        raise BrokenRecord("a number of more than 64 bits")

    def tag(self, end: int) -> tuple[int, int]:
        """A field's number and wire type."""
        raw = self.varint(end)
        if raw < 8 or raw >= _MOST_TAG:
            raise BrokenRecord(f"field {raw >> 3}")
        return raw >> 3, raw & 7

    def value(self, wire: int, end: int) -> int | bytes:
        """A varint's number, or the bytes of any other."""
        if wire == VARINT:
            return self.varint(end)
        if wire == LENGTH:
            return self._take(self.varint(end), end)
        if wire not in _FIXED_BYTES:
            raise BrokenRecord(f"wire type {wire}")
        return self._take(_FIXED_BYTES[wire], end)

    def _take(self, size: int, end: int) -> bytes:
        if size > end - self.at:
            raise BrokenRecord(f"{size} bytes, {end - self.at} left")
        self.at += size
        return self._data[self.at - size : self.at]


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Number, wire type and value of each field of a message."""
    wire = Wire(data)
    while wire.more(len(data)):
        number, kind = wire.tag(len(data))
        yield number, kind, wire.value(kind, len(data))
