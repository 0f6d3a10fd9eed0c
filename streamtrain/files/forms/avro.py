"""Avro container files, by the schema that they hold; decoded as Avro records are.

https://avro.apache.org/docs/1.12.0/specification/#object-container-files
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from streamtrain.columns.formats.avro_schema import MOMENTS, canonical, rows_of
from streamtrain.columns.formats.parsed import Binary, BrokenRecord, Moment, Pairs, Unusable
from streamtrain.columns.rejected import Unreadable
from streamtrain.errors import UserMistake
from streamtrain.files.avro_datum import Datum
from streamtrain.files.column_selection import Row
from streamtrain.files.source import Source, is_too_long, too_long

HELP = "Avro's container files, by the schema in them"
SUFFIXES = (".avro",)
TEXT = False
_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": lambda raw: zlib.decompress(raw, -zlib.MAX_WBITS),
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
}
_UNITS: dict[Any, Any] = dict(zip(MOMENTS.values(), ("D", "ms", "us", "ns"), strict=True))


def rows(source: Source) -> Iterator[tuple[int, Row | Unreadable]]:
    reader = _Reader(source)
    schema, codec = reader.head()
    row = 0
    for count, raw in reader.blocks():
        try:
            data = _CODECS[codec](raw)
        except (zlib.error, OSError, ValueError, EOFError, lzma.LZMAError) as error:
            raise reader.broken(f"a block that {codec} cannot decompress: {error}") from None
        datum = Datum(data, rows_of(schema))
        try:
            datum.claim(count)
            block = [datum.row() for _ in range(count)]
            if datum.at != len(data):
                raise BrokenRecord("another number of rows")
        except BrokenRecord as broken:
            raise reader.broken(f"{broken} in the block of row {row + 1}") from None
        for found in block:
            row += 1
            try:
                yield row, _plain(found)
            except ValueError as error:
                yield row, Unreadable(f"expected cells that can be read, got {error}")


def count(source: Source) -> int:
    reader = _Reader(source)
    reader.head()
    return sum(count for count, _ in reader.blocks())


def _plain(value: Any) -> Any:
    """A cell as a Python value; times as NumPy's. ValueError for one that cannot be read."""
    if isinstance(value, Pairs):
        return {key: _plain(inner) for key, inner in value}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, Moment):
        return np.datetime64(int(value), _UNITS[value.unit])
    if isinstance(value, Binary):
        return value.raw
    if isinstance(value, Unusable):
        raise ValueError(value.reason)
    return value


class _Reader:
    """Reads a container's parts in order."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._buffer = b""
        self._sync = b""

    def broken(self, got: str) -> UserMistake:
        return UserMistake(f"{self._source.name}: expected an Avro container file, got {got}")

    def head(self) -> tuple[str, str]:
        """The schema of an array of rows, as formats/avro.py takes it, and the codec."""
        if (magic := self._take(len(_MAGIC))) != _MAGIC:
            raise self.broken(f"one that begins with {magic!r}")
        metadata: dict[bytes, bytes] = {}
        while count := self._number():
            if count < 0:
                self._number()  # bytes of the block
            for _ in range(abs(count)):
                key = self._take(self._number())
                metadata[key] = self._take(self._number())
        self._sync = self._take(_SYNC_BYTES)
        codec = metadata.get(b"avro.codec", b"null").decode(errors="replace")
        if codec not in _CODECS:
            raise self.broken(f"the codec {codec!r}; write it with one of {', '.join(_CODECS)}")
        # a time without a zone is UTC's, as in other files
        text = metadata.get(b"avro.schema", b"").decode(errors="replace").replace('"local-timestamp-', '"timestamp-')
        try:
            return canonical(f'{{"type": "array", "items": {text}}}'), codec
        except ValueError as error:
            raise self.broken(f"a schema that is none of rows: {error}") from None

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yields each block's number of rows, and its bytes."""
        while self._fill(1):
            count, size = self._number(), self._number()
            if count < 0 or size < 0:
                raise self.broken(f"a block of {count} rows in {size} bytes")
            raw = self._take(size)
            if self._take(_SYNC_BYTES) != self._sync:
                raise self.broken("a block without its mark behind it")
            if count:
                yield count, raw

    def _number(self) -> int:
        raw = 0
        for at in range(10):
            byte = self._take(1)[0]
            raw |= (byte & 0x7F) << 7 * at
            if byte < 0x80:
                return (raw >> 1) ^ -(raw & 1)
        raise self.broken("a number of more than 64 bits")

    def _take(self, size: int) -> bytes:
        if is_too_long(size):
            raise too_long(self._source.name)
        if size < 0 or not self._fill(size):
            raise self.broken("one that is cut or broken")
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    def _fill(self, size: int) -> bool:
        while len(self._buffer) < size and (piece := self._source.read()):
            self._buffer += piece
        return len(self._buffer) >= size
