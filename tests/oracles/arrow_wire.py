"""Arrow's IPC messages, slowly: FlatBuffers read by struct; native/decode/arrow_stream.h says what is read.

Sources: https://arrow.apache.org/docs/format/Columnar.html, Schema.fbs and Message.fbs of apache/arrow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from streamtrain.columns.formats.parsed import BrokenRecord

SCHEMA, DICTIONARY, BATCH = 1, 2, 3
CONTINUATION = b"\xff\xff\xff\xff"
_DEEPEST = 64
(NULL, INTEGER, FLOATING, BINARY, UTF8, BOOLEAN, DECIMAL, DATE, TIME, TIMESTAMP, INTERVAL, LIST, STRUCTURE, UNION,
 FIXED_BINARY, FIXED_LIST, MAP, DURATION, LARGE_BINARY, LARGE_UTF8, LARGE_LIST) = range(1, 22)  # fmt: skip
_BUFFERS = {NULL: 0, BINARY: 3, UTF8: 3, LARGE_BINARY: 3, LARGE_UTF8: 3, STRUCTURE: 1, FIXED_LIST: 1}  # of others 2
_UNITS = [(1000, 1), (1, 1), (1, 1000), (1, 1_000_000)]


class Flat:
    """A FlatBuffer's tables by their places; BrokenRecord where one does not lie within the bytes."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self._looked_at = 0

    def load(self, form: str, at: int) -> int:
        if not 0 <= at <= len(self.raw) - struct.calcsize(form):
            raise BrokenRecord("metadata that do not hold together")
        value: int = struct.unpack_from(form, self.raw, at)[0]
        return value

    def follow(self, at: int) -> int:
        offset = self.load("<I", at)
        if not 0 < offset <= len(self.raw) - at:
            raise BrokenRecord("metadata that do not hold together")
        return at + offset

    def table(self, at: int) -> Table:
        self._looked_at += 1
        fields = at - self.load("<i", at)
        size = self.load("<H", fields) if fields >= 0 else 0
        if self._looked_at > len(self.raw) or not 4 <= size <= len(self.raw) - fields:
            raise BrokenRecord("metadata that do not hold together")
        return Table(self, at, fields + 4, (size - 4) // 2)


@dataclass
class Table:
    """One table; a field that is not there is 0, "", none."""

    flat: Flat
    at: int
    fields: int
    count: int

    def _place(self, number: int) -> int:
        offset = self.flat.load("<H", self.fields + 2 * number) if number < self.count else 0
        return self.at + offset if offset else 0

    def scalar(self, number: int, form: str, otherwise: int = 0) -> int:
        at = self._place(number)
        return self.flat.load(form, at) if at else otherwise

    def table(self, number: int) -> Table | None:
        at = self._place(number)
        return self.flat.table(self.flat.follow(at)) if at else None

    def vector(self, number: int, element_bytes: int) -> tuple[int, int]:
        """(where its first element stands, how many)."""
        if not (place := self._place(number)):
            return 0, 0
        at = self.flat.follow(place)
        count = self.flat.load("<I", at)
        if count * element_bytes > len(self.flat.raw) - at - 4:
            raise BrokenRecord("metadata that do not hold together")
        return at + 4, count

    def tables(self, number: int) -> list[Table]:
        at, count = self.vector(number, 4)
        return [self.flat.table(self.flat.follow(at + 4 * i)) for i in range(count)]

    def text(self, number: int) -> bytes:
        at, count = self.vector(number, 1)
        return self.flat.raw[at : at + count]

    def numbers(self, number: int) -> list[tuple[int, int]]:
        """Returns a vector of structs of two i64."""
        at, count = self.vector(number, 16)
        return [(self.flat.load("<q", at + 16 * i), self.flat.load("<q", at + 16 * i + 8)) for i in range(count)]


@dataclass
class Field:
    """One of a schema; `type`: 0 of one that this build does not know."""

    name: str
    type: int
    bits: int = 0
    signed: bool = False
    unit: tuple[int, int] | None = None
    size: int = 0  # of a list
    codes: tuple[int, int, bool] | None = None  # a dictionary's number, bits of its indexes, whether they are signed
    children: list[Field] = field(default_factory=list)

    @property
    def buffers(self) -> int:
        if self.codes is not None:
            return 2
        if self.type in (0, UNION):
            raise BrokenRecord("a field of a type that this build does not know")
        return _BUFFERS.get(self.type, 2)


def read_field(given: Table, depth: int = 0) -> Field:
    found = given.scalar(2, "<B")
    field = Field(given.text(0).decode(errors="replace"), found if found <= LARGE_LIST else 0)
    of = given.table(3)
    if of is not None:
        _read_type(field, of)
    else:
        _read_type(field, Table(given.flat, 0, 0, 0))
    if (coded := given.table(4)) is not None:
        index = coded.table(1)
        bits, signed = (32, True) if index is None else (index.scalar(0, "<i"), bool(index.scalar(1, "<B")))
        field.codes = (coded.scalar(0, "<q"), bits, signed)
    _, count = given.vector(5, 4)
    if depth < _DEEPEST:
        field.children = [read_field(each, depth + 1) for each in given.tables(5)]
    if count != len(field.children):
        field.type = 0
    return field


def _read_type(field: Field, of: Table) -> None:
    if field.type == INTEGER:
        field.bits, field.signed = of.scalar(0, "<i"), bool(of.scalar(1, "<B"))
    elif field.type == FLOATING:
        precision = of.scalar(0, "<h")
        field.bits = 16 << precision if 0 <= precision <= 2 else 0
    elif field.type == DATE:
        in_days = of.scalar(0, "<h", 1) == 0
        field.bits, field.unit = (32, (86_400_000, 1)) if in_days else (64, (1, 1))
    elif field.type == TIMESTAMP:
        unit = of.scalar(0, "<h")
        field.bits = 64
        field.type, field.unit = (TIMESTAMP, _UNITS[unit]) if 0 <= unit <= 3 else (0, None)
    elif field.type == FIXED_LIST:
        field.size = of.scalar(0, "<i")
        field.type = field.type if field.size >= 0 else 0


@dataclass
class Message:
    type: int
    header: Table
    body: bytes


def messages(record: bytes) -> Iterator[Message]:
    """Yields the messages of a stream. Raises BrokenRecord if the record is not one."""
    at = 0
    while at < len(record):
        if len(record) - at < 8 or record[at : at + 4] != CONTINUATION:
            raise BrokenRecord("no message")
        (size,) = struct.unpack_from("<i", record, at + 4)
        at += 8
        if size == 0:
            if at != len(record):
                raise BrokenRecord("bytes behind the end")
            break
        if not 0 < size <= len(record) - at:
            raise BrokenRecord("a message beyond the end")
        flat = Flat(record[at : at + size])
        at += size
        root = flat.table(flat.follow(0))
        header = root.table(2)
        kind, body = root.scalar(1, "<B"), root.scalar(3, "<q")
        if header is None or root.scalar(0, "<h") not in (3, 4) or not SCHEMA <= kind <= BATCH:
            raise BrokenRecord("no message of a stream of batches")
        if not 0 <= body <= len(record) - at:
            raise BrokenRecord("a body beyond the end")
        yield Message(kind, header, record[at : at + body])
        at += body
