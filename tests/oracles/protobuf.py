"""Protobuf records, slowly: what the native decoder and encoder are tested against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamtrain.columns.formats._protobuf_wire import LENGTH, Wire
from streamtrain.columns.formats.parsed import BrokenRecord
from streamtrain.columns.formats.protobuf_schema import (
    SCHEMA,
    Message,
    Messages,
    canonical,
    messages_of,
)
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.oracles.frame import Ask, Frame, frame_of, prefix
from tests.oracles.parsed import Parsed, registry_frame
from tests.oracles.plain_cells import each_row
from tests.oracles.protobuf_read import Reading, resolved
from tests.oracles.protobuf_values import message_bytes
from tests.oracles.protobuf_wire import sized, unzigzag, varint, zigzag

_MOST_INDEXES = 32


_EXAMPLE = """
syntax = "proto2";
message Rows { repeated Row rows = 1; }
message Row {
  optional float x1 = 1;
  optional double x2 = 2;
  optional float x3 = 3;
  optional string id = 4;
  optional double when = 5;
  optional string carrier = 6;
  optional string origin = 7;
  optional Late late = 16;
  optional double w = 17;
  optional double x = 18;
  optional Row other = 2048;
  repeated float more = 19 [packed = true];
  oneof either { int64 one = 20; Row two = 21; }
}
enum Late { walk = 2; sit = 3; }
"""


EXAMPLE_OPTIONS = {"schema": SCHEMA.reading(_EXAMPLE)}


def encode_rows(
    columns_of: Schema, rows: Sequence[Any], *, schema: str, message: str = "", frame: str = "none",
    schema_id: int = 0, **others: Any,
) -> bytes:  # fmt: skip
    """Rows as they are, one record: each a map. UserMistake for what the schema cannot hold."""
    known = messages_of(schema)
    top = known.named(message)
    row_message, many = known.row(top)
    if many is None and len(rows) != 1:
        raise UserMistake(f"protobuf: expected one row for a record of {top.name}, got {len(rows)}")
    columns = {name: column for name, column in columns_of.columns if name in columns_of.record_names}
    cells = {columns_of.paths.get(name, (name,)): column.entry.time_unit(column) for name, column in columns.items()}
    messages = each_row("protobuf", rows, columns, lambda row: message_bytes(known, row_message, row, cells))
    before = frame_bytes(schema_id, top) if frame == "registry" else b""
    return before + (messages[0] if many is None else b"".join(sized(many.number, each) for each in messages))


def frame_bytes(schema_id: int, message: Message) -> bytes:
    """Returns the bytes that a registry's serializers write before a message.

    They are 0, the id, and the message's place in the schema.
    """
    index = message.index or (0,)
    places = b"\0" if index == (0,) else b"".join(varint(zigzag(each)) for each in (len(index), *index))
    return prefix("registry", schema_id) + places


def parse(
    record: bytes,
    schema: str,
    message: str = "",
    frame: str = "none",
    schemas: Ask | None = None,
    header: bytes | None = None,
    **others: Any,
) -> Parsed:
    """The record's values, slowly; `schemas` gives the text of a name, or why there is none, `header` may hold it."""
    known = messages_of(schema)
    top = known.named(message)
    if frame != "registry":
        if record and (why_not := registry_frame(record)):
            return Parsed(broken=why_not, maps_of_arrays=False)
        return _read(record, known, top)
    try:
        found = frame_of(record, header)
        index, at = _place(found)
    except BrokenRecord as broken:
        return Parsed(broken=str(broken), maps_of_arrays=False)
    text, why_not = found.answer(schemas)
    written = None if why_not else messages_of(text).at(index)
    alike = written is not None and (messages_of(text).row(written)[1] is None) == (known.row(top)[1] is None)
    if written is None or written.short != top.short or not alike:
        return Parsed(broken=why_not or "no such message", maps_of_arrays=False)
    datum = record if found.in_header else found.behind[at:]
    return _read(datum, resolved(messages_of(text), known, written, top), written)


def _place(frame: Frame) -> tuple[tuple[int, ...], int]:
    """A message's place in its schema, and where behind the schema's name that ends."""
    wire, size = Wire(frame.behind), len(frame.behind)
    count = unzigzag(wire.varint(size))
    if not 0 <= count <= _MOST_INDEXES:
        raise BrokenRecord(f"{count} indexes")
    index = tuple(unzigzag(wire.varint(size)) for _ in range(count))
    if frame.in_header and wire.at != size:
        raise BrokenRecord("more behind the message's place")
    return index or (0,), wire.at


def _read(record: bytes, known: Messages, top: Message) -> Parsed:
    row_message, many = known.row(known.by_name[top.name])
    parsed = Parsed(many=many is not None, maps_of_arrays=False)
    reading = Reading(record, known)
    end = len(record)
    try:
        if many is None:
            parsed.rows.append(reading.row(row_message, end))
        while many is not None and reading.wire.more(end):
            number, wire = reading.wire.tag(end)
            if number != many.number:
                reading.wire.value(wire, end)
                continue
            if wire != LENGTH:
                raise BrokenRecord(f"wire type {wire}")
            parsed.rows.append(reading.row(row_message, reading.past_length(end)))
    except BrokenRecord as broken:
        parsed.broken, parsed.broken_field = str(broken), reading.field
    return parsed


def _example(*rows: dict[str, Any]) -> bytes:
    known = messages_of(EXAMPLE_OPTIONS["schema"])
    top = known.by_name["Row"]
    return b"".join(sized(1, message_bytes(known, top, row, {})) for row in rows)


_ROW = {"x1": 1.5, "x2": -2000, "carrier": "AA", "late": 1}


EXAMPLES = [
    _example(_ROW),
    _example({"late": 1, "carrier": "é", "x1": 0.25, "x2": 2**40, "more": [1.0, 2.0, 3.0], "one": -5}),
    _example({**_ROW, "x1": 1}, {"x2": 2}, {"x1": 7, "late": 1, "x2": 1}),
    _example({**_ROW, "other": {**_ROW, "other": {"x2": 3}}}, {**_ROW, "x1": float("nan")}, {**_ROW, "two": _ROW}),
    _example(*({**_ROW, "x3": float(i), "when": 10**i, "w": i % 3, "id": str(i)} for i in range(16))),
    _example(_ROW, {**_ROW, "carrier": "x" * 300, "late": 0}, {"x2": 5}) + varint(2 << 3) + b"\x05",
    _example({**_ROW, "late": "walk"}, {**_ROW, "x1": 2}) + sized(1, b"\x0d\0\0\x80\x3f" * 3 + b"\x80\x01\x03"),
    _example(),
]


def holds_many(schema: str, message: str = "", **others: Any) -> bool:
    """Returns True if a record may hold many rows."""
    known = messages_of(schema)
    return known.row(known.named(message))[1] is not None


def schema_of(fields: Mapping[str, str]) -> str:
    """A schema of rows with these fields, each a "number" or a "text"."""
    types = {"number": "double", "text": "string"}
    declarations = (f"optional {types[kind]} {name} = {i};" for i, (name, kind) in enumerate(fields.items(), 1))
    return canonical('syntax = "proto3"; message Row { ' + " ".join(declarations) + " }")
