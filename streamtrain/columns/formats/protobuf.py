"""Protobuf records: one message of the schema that [records] names; one that has no other field than many is many rows.

A field that its schema lets go unwritten (proto3 without `optional`) is then 0, false or "", any other is missing.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamtrain.columns.formats import _protobuf_columns
from streamtrain.columns.formats._cells import plain_columns
from streamtrain.columns.formats._frame import Ask, Frame, frame_of
from streamtrain.columns.formats._proto_writing import proto_text
from streamtrain.columns.formats._protobuf_read import Reading, resolved
from streamtrain.columns.formats._protobuf_values import message_bytes
from streamtrain.columns.formats._protobuf_wire import LENGTH, Wire, sized, unzigzag, varint, zigzag
from streamtrain.columns.formats.parsed import BrokenRecord, Parsed, registry_frame
from streamtrain.columns.formats.protobuf_schema import (
    SCHEMA,
    Message,
    Messages,
    canonical,
    canonical_files,
    messages_of,
)
from streamtrain.columns.paths import nested
from streamtrain.columns.schema import Schema
from streamtrain.compute.options import Name, Problem, Word
from streamtrain.errors import UserMistake

HELP = "Protobuf by a schema: a message, or many in one"
CELLS = ("value", "list")
OPTIONS = {
    "schema": SCHEMA,
    "message": Name(
        what="a message's full name", default="", help="of the schema's messages; default: the file's first"
    ),
    "frame": Word(
        of=("none", "registry"),
        default="none",
        help="what tells a message's schema: this job's settings, or its name in a registry and which of its messages "
        "it is, in a header or before the message; with [registry] that",
    ),
}
REGISTRY_OPTIONS = {"frame": "registry"}  # where the job has a registry and does not say otherwise
REGISTRY_TYPE = "PROTOBUF"
NEEDS_SCHEMA = True  # to be read

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


def problems(*, schema: str, frame: str, message: str = "", **others: Any) -> Iterator[Problem]:
    """Yields the problems of settings that do not go together."""
    if not schema:
        if frame == "none":
            yield Problem("schema", SCHEMA.takes())
        return
    try:
        messages_of(schema).named(message)
    except ValueError as error:
        yield Problem("message", str(error), message)


def encode(columns_of: Schema, columns: Mapping[str, Any], *, schema: str, **others: Any) -> bytes:
    """All rows of `columns`, arrays or lists of one length; None is a field that is not there.

    UserMistake for what the schema cannot hold.
    """
    cells = plain_columns(columns)
    count = len(next(iter(cells.values()), []))
    rows = [nested({name: cells[name][i] for name in cells}, columns_of.paths) for i in range(count)]
    return encode_rows(columns_of, rows, schema=schema, **others)


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
    messages = []
    for row in rows:
        if not isinstance(row, Mapping):
            raise UserMistake(f"protobuf: expected rows with names, got {type(row).__name__}")
        given = {name: None if value == "" and name in columns else value for name, value in row.items()}
        try:
            messages.append(message_bytes(known, row_message, given, cells))
        except ValueError as error:
            field, expected, got = error.args
            raise UserMistake(f"protobuf: {field}: expected {expected}, got {got}") from None
    before = frame_bytes(schema_id, top) if frame == "registry" else b""
    return before + (messages[0] if many is None else b"".join(sized(many.number, each) for each in messages))


def frame_bytes(schema_id: int, message: Message) -> bytes:
    """Returns the bytes that a registry's serializers write before a message.

    They are 0, the id, and the message's place in the schema.
    """
    index = message.index or (0,)
    places = b"\0" if index == (0,) else b"".join(varint(zigzag(each)) for each in (len(index), *index))
    return b"\0" + struct.pack(">I", schema_id) + places


def registry_reading(text: str, others: Sequence[str] = ()) -> str:
    """A schema as a registry holds it, a .proto or a file descriptor in base64 → as settings do; else ValueError.

    `others`: the files that it imports, those that import nothing of the rest first.
    """
    return canonical_files([_registry_file(each) for each in (*others, text)])


def _registry_file(text: str) -> str | bytes:
    if "{" in text:
        return text
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("expected a .proto or a file descriptor in base64") from None


def registry_text(schema: str) -> str:
    """And back."""
    return proto_text(messages_of(schema))


def schema_of(fields: Mapping[str, str]) -> str:
    """A schema of rows with these fields, each a "number" or a "text"."""
    types = {"number": "double", "text": "string"}
    declarations = (f"optional {types[kind]} {name} = {i};" for i, (name, kind) in enumerate(fields.items(), 1))
    return canonical('syntax = "proto3"; message Row { ' + " ".join(declarations) + " }")


def holds_many(schema: str, message: str = "", **others: Any) -> bool:
    """Returns True if a record may hold many rows."""
    known = messages_of(schema)
    return known.row(known.named(message))[1] is not None


def mistakes(columns: Schema, *, schema: str, message: str = "", **others: Any) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of columns that no record of the schema can give."""
    if not schema:
        return iter(())
    known = messages_of(schema)
    return _protobuf_columns.mistakes(columns, known, known.row(known.named(message))[0])


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
