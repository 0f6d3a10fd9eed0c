"""Arrow records, slowly: what the native decoder and encoder are tested against."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from streamtrain.columns.formats import packed
from streamtrain.columns.formats._packed_cells import read_pieces, read_text
from streamtrain.columns.formats.parsed import MISSING_ENTRY, Binary, BrokenRecord, Moment, Pairs, Unusable
from streamtrain.columns.schema import Schema
from tests.oracles import arrow_wire as wire
from tests.oracles.packed import EXAMPLE_COLUMNS, EXAMPLE_SCHEMA, columns_of
from tests.oracles.parsed import Parsed, registry_frame

_MOST_ROWS = 0x7FFFFFFF
_FLOATS = {16: "<f2", 32: "<f4", 64: "<f8"}


def encode(schema: Schema, columns: Mapping[str, Any]) -> bytes:
    """Decodes all rows of the schema's columns."""
    found, rows = columns_of(schema, columns, hashed=False)
    arrays = {name: _array(column, rows) for name, column in found.items()}
    batch, to = pa.record_batch(arrays), pa.BufferOutputStream()
    with pa.ipc.new_stream(to, batch.schema) as writer:
        writer.write_batch(batch)
    record: bytes = to.getvalue().to_pybytes()
    return record


def _array(column: packed.PackedColumn, rows: int) -> pa.Array:
    """A packed column's cells as pyarrow has them."""
    kind, data, nulls, more, _ = column
    gone = np.unpackbits(np.frombuffer(nulls, "u1"), count=rows, bitorder="little") if nulls else np.zeros(rows, "u1")
    mask = gone.astype(bool)
    if kind == "floats":
        lists = np.frombuffer(data, "<f4").reshape(rows, more).tolist()
        return pa.array(lists, pa.list_(pa.float32(), more), mask=mask)
    if kind == "list":  # of texts
        ends = np.frombuffer(data, "<u4", rows)
        texts = pa.array(read_pieces(data[4 * rows :], int(ends[-1]) if rows else 0), pa.string())
        return pa.ListArray.from_arrays(np.append(0, ends).astype("i4"), texts, mask=pa.array(mask))
    if kind == "bool" or kind[1:].isdigit():
        return pa.array(np.frombuffer(data, "?" if kind == "bool" else f"<{kind}"), mask=mask)
    cells = [None if is_gone else cell for cell, is_gone in zip(_pieces(kind, data, rows, more), mask, strict=True)]
    return pa.array(cells, pa.binary() if kind == "bytes" else pa.string())


def _pieces(kind: str, data: bytes, rows: int, more: int) -> list[bytes]:
    if kind == "fixed":
        return [data[more * row : more * (row + 1)] for row in range(rows)]
    if kind != "words":
        return read_pieces(data, rows)
    (count,) = struct.unpack_from("<I", data, 4 * rows)
    table = read_pieces(data[4 * rows + 4 :], count)
    return [table[code] for code in np.frombuffer(data, "<u4", rows).tolist()]


def parse(record: bytes) -> Parsed:
    """The record's values, slowly. A column that cannot be read is Unusable as a whole."""
    if (frame := registry_frame(record)) is not None:
        return Parsed(broken=frame)
    parsed = Parsed(many=True, columns=Pairs())
    stream = _Stream()
    try:
        for message in wire.messages(record):
            stream.take(message)
        if stream.fields is None:
            raise BrokenRecord("no schema")
    except BrokenRecord as broken:
        parsed.broken = str(broken)
        parsed.columns = Pairs((name, cells) for name, cells in stream.columns.items() if isinstance(cells, Unusable))
    else:
        parsed.columns, parsed.row_count = Pairs(stream.columns.items()), stream.rows
    return parsed


class _Buffers:
    """Nodes and buffers of a batch, one field's after the other's."""

    def __init__(self, header: wire.Table, body: bytes) -> None:
        self._nodes, self._places, self._body = iter(header.numbers(1)), iter(header.numbers(2)), body
        if header.table(3) is not None:
            raise BrokenRecord("a compressed body")

    def of(self, field: wire.Field, count: int) -> tuple[int, int, list[bytes]]:
        """(rows, missing ones, buffers)."""
        try:
            rows, missing = next(self._nodes)
            places = [next(self._places) for _ in range(count)]
        except StopIteration:
            raise BrokenRecord("fewer fields than its schema has") from None
        for at, size in places:
            if at < 0 or size < 0 or at + size > len(self._body):
                raise BrokenRecord("a buffer outside of its batch's body")
        return rows, missing, [self._body[at : at + size] for at, size in places]


class _Stream:
    """The columns read so far: the cells of each, or why it has none."""

    def __init__(self) -> None:
        self.fields: list[wire.Field] | None = None
        self.columns: dict[str, Any] = {}
        self.rows = 0
        self._words: dict[int, list[Any]] = {}

    def take(self, message: wire.Message) -> None:
        if (message.type == wire.SCHEMA) != (self.fields is None):
            raise BrokenRecord("a schema where none is expected, or none")
        if self.fields is None:
            if message.header.scalar(0, "<h") != 0:
                raise BrokenRecord("numbers of the other byte order")
            self.fields = [wire.read_field(each) for each in message.header.tables(1)]
            self.columns = {field.name: [] for field in self.fields}
        elif message.type == wire.DICTIONARY:
            self._take_words(message, self.fields)
        else:
            self._take_batch(message, self.fields)

    def _take_words(self, message: wire.Message, fields: list[wire.Field]) -> None:
        number, header = message.header.scalar(0, "<q"), message.header.table(1)
        if message.header.scalar(2, "<B"):
            raise BrokenRecord("a dictionary in parts")
        if header is None:
            header = wire.Table(message.header.flat, 0, 0, 0)
        _Buffers(header, message.body)
        for field in fields:
            coded = field.children[0] if _is_list(field) else field
            if coded.codes is None or coded.codes[0] != number:
                continue
            values = wire.Field(field.name, coded.type)
            try:
                rows, missing, buffers = _Buffers(header, message.body).of(values, values.buffers)
                if coded.type not in (wire.UTF8, wire.LARGE_UTF8):
                    raise BrokenRecord("codes of other than texts")
                if not 0 <= rows <= len(buffers[1]):
                    raise BrokenRecord("fewer bytes than rows need")
                cells = _cells(values, rows, missing, buffers, rows, {})
                self._words[number] = [None if cell is MISSING_ENTRY else cell for cell in cells]
            except (BrokenRecord, ValueError) as broken:
                self.columns[field.name] = Unusable(str(broken))

    def _take_batch(self, message: wire.Message, fields: list[wire.Field]) -> None:
        rows = message.header.scalar(0, "<q")
        buffers = _Buffers(message.header, message.body)
        if not 0 <= rows <= min(_MOST_ROWS, 8 * len(message.body)):
            raise BrokenRecord(f"a batch of {rows} rows")
        for field in fields:
            try:
                inside = self._passed(field, buffers)
            except BrokenRecord:
                self.columns[field.name] = Unusable("fewer fields or buffers than its schema has")
                raise
            if isinstance(self.columns[field.name], Unusable):
                continue
            try:
                cells = self._read(field, inside, rows)
            except (BrokenRecord, ValueError) as broken:
                self.columns[field.name] = Unusable(str(broken))
            else:
                self.columns[field.name] = self.columns[field.name] + cells
        self.rows += rows

    def _passed(self, field: wire.Field, buffers: _Buffers) -> list[tuple[int, int, list[bytes]]]:
        """Returns the row counts, missing counts and buffers of a field and all fields below it."""
        found = [buffers.of(field, field.buffers)]
        for child in field.children if field.codes is None else ():
            found += self._passed(child, buffers)
        return found

    def _read(self, field: wire.Field, found: list[tuple[int, int, list[bytes]]], rows: int) -> list[Any]:
        if not _is_list(field):
            return self._plain(field, found[0], rows)
        of = field.children[0]
        if field.type == wire.FIXED_LIST and of.type == wire.FLOATING and of.bits > 16 and of.codes is None:
            return _floats(field, found[0], found[1], rows)
        count, _, buffers = found[1]
        if of.type != wire.NULL and not 0 <= count <= 8 * sum(map(len, buffers)):
            raise BrokenRecord("lists of more cells than there can be")
        cells = [] if of.type == wire.NULL else self._plain(of, found[1], count)
        return _lists(field, found[0], cells, rows)

    def _plain(self, field: wire.Field, found: tuple[int, int, list[bytes]], rows: int) -> list[Any]:
        if field.codes is None and field.children:
            raise BrokenRecord("a type that is no column's")
        return _cells(field, *found, rows, self._words)


def _is_list(field: wire.Field) -> bool:
    is_one = field.type in (wire.LIST, wire.LARGE_LIST, wire.FIXED_LIST)
    return is_one and field.codes is None and len(field.children) == 1


def _present(rows: int, missing: int, there: bytes, expected: int) -> list[bool]:
    if rows != expected:
        raise BrokenRecord("another number of rows than its batch")
    if missing == 0 or rows == 0:
        return [True] * rows
    if len(there) < (rows + 7) // 8:
        raise BrokenRecord("fewer bytes than rows need")
    return [bool(there[row >> 3] >> (row & 7) & 1) for row in range(rows)]


def _cells(field: wire.Field, rows: int, missing: int, buffers: list[bytes], expected: int,
           words: Mapping[int, list[Any]]) -> list[Any]:  # fmt: skip
    if field.type == wire.NULL:
        return [MISSING_ENTRY] * expected
    there = _present(rows, missing, buffers[0], expected)
    cells = _coded(field, buffers[1], rows, words) if field.codes is not None else _plain(field, buffers[1:], rows)
    return [cell if is_there else MISSING_ENTRY for cell, is_there in zip(cells, there, strict=True)]


def _coded(field: wire.Field, data: bytes, rows: int, words: Mapping[int, list[Any]]) -> list[Any]:
    assert field.codes is not None
    number, bits, signed = field.codes
    if number not in words:
        raise BrokenRecord("codes without their dictionary")
    table = words[number]
    codes = _integers(data, rows, bits, signed)
    return [table[code] if 0 <= code < len(table) else Unusable("a word there is not") for code in codes]


def _integers(data: bytes, rows: int, bits: int, signed: bool) -> list[Any]:
    if bits not in (8, 16, 32, 64):
        raise BrokenRecord("a type that is no column's")
    values: list[Any] = np.frombuffer(data, f"<{'i' if signed else 'u'}{bits // 8}", rows).tolist()
    return values


def _plain(field: wire.Field, buffers: list[bytes], rows: int) -> list[Any]:
    values: list[Any]
    if field.type == wire.INTEGER:
        return _integers(buffers[0], rows, field.bits, field.signed)
    if field.type == wire.FLOATING:
        values = np.frombuffer(buffers[0], _FLOATS[field.bits], rows).tolist() if field.bits else []
        return values if field.bits else _integers(b"", rows, 0, False)
    if field.type in (wire.DATE, wire.TIMESTAMP):
        assert field.unit is not None
        return [Moment(value, field.unit) for value in _integers(buffers[0], rows, field.bits, True)]
    if field.type == wire.BOOLEAN:
        bits = np.frombuffer(buffers[0], "u1", (rows + 7) // 8)
        return [bool(bit) for bit in np.unpackbits(bits, count=rows, bitorder="little")]
    large = field.type in (wire.LARGE_UTF8, wire.LARGE_BINARY)
    if field.type in (wire.UTF8, wire.LARGE_UTF8):
        return [read_text(raw) for raw in _texts(buffers, rows, large)]
    if field.type in (wire.BINARY, wire.LARGE_BINARY):
        return [Binary("binary", raw) for raw in _texts(buffers, rows, large)]
    raise BrokenRecord("a type that is no column's")


def _texts(buffers: list[bytes], rows: int, large: bool) -> list[bytes]:
    if rows == 0:
        return []
    ends = np.frombuffer(buffers[0], "<i8" if large else "<i4", rows + 1).tolist()
    if ends != sorted(ends) or ends[0] < 0 or ends[-1] > len(buffers[1]):
        raise BrokenRecord("text ends out of order")
    return [buffers[1][start:end] for start, end in pairwise(ends)]


def _lists(field: wire.Field, lists: tuple[int, int, list[bytes]], cells: list[Any], expected: int) -> list[Any]:
    """Returns lists of any length. Lists of cells without a type are empty."""
    rows, missing, buffers = lists
    there = _present(rows, missing, buffers[0], expected)
    if field.children[0].type == wire.NULL or rows == 0:
        ends = [0] * (rows + 1)
    elif field.type == wire.FIXED_LIST:
        ends = [field.size * row for row in range(rows + 1)]
        if ends[-1] > len(cells):
            raise BrokenRecord("lists longer than their cells")
    else:
        ends = np.frombuffer(buffers[1], "<i4" if field.type == wire.LIST else "<i8", rows + 1).tolist()
        if ends != sorted(ends) or ends[0] < 0 or ends[-1] > len(cells):
            raise BrokenRecord("list ends out of order")
    found = [cells[start:end] for start, end in pairwise(ends)]
    return [cell if is_there else MISSING_ENTRY for cell, is_there in zip(found, there, strict=True)]


def _floats(field: wire.Field, lists: tuple[int, int, list[bytes]], inside: tuple[int, int, list[bytes]],
            expected: int) -> list[Any]:  # fmt: skip
    rows, missing, buffers = lists
    there = _present(rows, missing, buffers[0], expected)
    of = field.children[0]
    count = rows * field.size
    if inside[1] != 0 and not _all_there(there, inside[2][0], field.size):
        raise BrokenRecord("a list with a missing number")
    if len(inside[2][1]) // (of.bits // 8) < count:
        raise BrokenRecord("fewer bytes than rows need")
    with np.errstate(over="ignore"):
        values = np.frombuffer(inside[2][1], _FLOATS[of.bits], count).astype("<f4").reshape(rows, field.size).tolist()
    return [cell if is_there else MISSING_ENTRY for cell, is_there in zip(values, there, strict=True)]


def _all_there(lists: list[bool], bits: bytes, size: int) -> bool:
    """Returns True if no list that is there has a missing number."""
    if len(bits) < (len(lists) * size + 7) // 8:
        return False
    places = [i for row, is_there in enumerate(lists) if is_there for i in range(row * size, (row + 1) * size)]
    return all(bits[i >> 3] >> (i & 7) & 1 for i in places)


EXAMPLES = [encode(EXAMPLE_SCHEMA, columns) for columns in EXAMPLE_COLUMNS]
