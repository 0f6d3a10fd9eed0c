"""Avro records: one datum of the schema that [records] names; a record is a row, an array of records is many."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamtrain.columns.formats import _avro_columns
from streamtrain.columns.formats._avro_values import number, row_bytes
from streamtrain.columns.formats._cells import plain_columns
from streamtrain.columns.formats._frame import Ask, datum_of
from streamtrain.columns.formats.avro_schema import (
    MOMENTS,
    SCHEMA,
    Rows,
    Type,
    canonical,
    kind_of,
    logical_of,
    rows_of,
)
from streamtrain.columns.formats.parsed import Binary, BrokenRecord, Pairs, Parsed, Unusable
from streamtrain.columns.kinds.cell import Moment
from streamtrain.columns.paths import nested
from streamtrain.columns.schema import Schema
from streamtrain.compute.options import Problem, Word
from streamtrain.errors import UserMistake

HELP = "Avro by a schema: a record, or an array of records"
CELLS = ("value", "list")
OPTIONS = {
    "schema": SCHEMA,
    "frame": Word(
        of=("none", "registry"),
        default="none",
        help="what tells a datum's schema: this job's settings, or its name in a registry, in a header or before the "
        "datum; with [registry] that",
    ),
}
REGISTRY_OPTIONS = {"frame": "registry"}  # where the job has a registry and does not say otherwise
REGISTRY_TYPE = "AVRO"
NEEDS_SCHEMA = True  # to be read

_DEEPEST = 64  # records within each other, but those that always take as many bytes; as native/decode/formats/avro.h
_MOST_DECIMAL_BYTES = 32
_SCALAR = '["null","boolean","long","double","string"]'
EXAMPLE_OPTIONS = {
    "schema": '{"type":"array","items":{"type":"record","name":"Row","fields":['
    + ",".join(
        f'{{"name":"{name}","type":{_SCALAR},"default":null}}'
        for name in ("x", "x1", "x2", "x3", "id", "when", "carrier", "origin", "late", "w")
    )
    + ',{"name":"other","type":["null",{"type":"map","values":"Row"},{"type":"array","items":"float"}],"default":null}'
    + "]}}"
}


def problems(*, schema: str, frame: str, **others: Any) -> Iterator[Problem]:
    """Yields the problems of settings that do not go together."""
    if not schema and frame == "none":
        yield Problem("schema", SCHEMA.takes())


def encode(columns_of: Schema, columns: Mapping[str, Any], *, schema: str, **frame: Any) -> bytes:
    """All rows of `columns`, arrays or lists of one length; None is null.

    UserMistake for what the schema cannot hold.
    """
    cells = plain_columns(columns)
    count = len(next(iter(cells.values()), []))
    rows = [nested({name: cells[name][i] for name in cells}, columns_of.paths) for i in range(count)]
    return encode_rows(columns_of, rows, schema=schema, **frame)


def encode_rows(
    columns_of: Schema, rows: Sequence[Any], *, schema: str, frame: str = "none", schema_id: int = 0, **others: Any
) -> bytes:
    """Rows as they are, one record: each a map. UserMistake for what the schema cannot hold."""
    before = b"\0" + struct.pack(">I", schema_id) if frame == "registry" else b""
    known = rows_of(schema)
    if not known.many and len(rows) != 1:
        raise UserMistake(f"avro: expected one row for a record of the schema {known.row['name']}, got {len(rows)}")
    columns = dict(columns_of.columns)
    units = {name: column.entry.time_unit(column) for name, column in columns.items()}
    datums = []
    for row in rows:
        if not isinstance(row, Mapping):
            raise UserMistake(f"avro: expected rows with names, got {type(row).__name__}")
        given = {name: None if value == "" and name in columns else value for name, value in row.items()}
        try:
            datums.append(row_bytes(known, given, units))
        except ValueError as error:
            field, expected, got = error.args
            raise UserMistake(f"avro: {field}: expected {expected}, got {got}") from None
    if not known.many:
        return before + datums[0]
    return before + (number(len(datums)) if datums else b"") + b"".join(datums) + number(0)


def array_datum(count: int, rows: bytes) -> bytes:
    """The datum of an array of `count` rows, whose data lie one behind the other."""
    return number(count) + rows + number(0)


def registry_reading(text: str, others: Sequence[str] = ()) -> str:
    """A schema as a registry holds it, with those that it refers to → as settings do. ValueError where it is none."""
    return canonical(text, tuple(others))


def registry_text(schema: str) -> str:
    """And back."""
    return schema


def schema_of(fields: Mapping[str, str]) -> str:
    """A schema of rows with these fields, each a "number" or a "text"."""
    types = {"number": "double", "text": "string"}
    row = [{"name": name, "type": types[kind]} for name, kind in fields.items()]
    return canonical(json.dumps({"type": "record", "name": "Row", "fields": row}))


def holds_many(schema: str, **others: Any) -> bool:
    """Returns True if a record may hold many rows."""
    return rows_of(schema).many


def mistakes(columns: Schema, *, schema: str, **others: Any) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of columns that no record of the schema can give."""
    return _avro_columns.mistakes(columns, rows_of(schema)) if schema else iter(())


def parse(
    record: bytes,
    schema: str,
    frame: str = "none",
    schemas: Ask | None = None,
    header: bytes | None = None,
    **others: Any,
) -> Parsed:
    """The record's values, slowly; `schemas` gives the text of a name, or why there is none, `header` may hold it."""
    if frame != "registry":
        if not record:
            return Parsed(broken="expected a record, got an empty value", maps_of_arrays=False)
        return _read(record, rows_of(schema))
    try:
        datum, written = datum_of(record, header, schemas)
    except BrokenRecord as broken:
        return Parsed(broken=str(broken), maps_of_arrays=False)
    parsed = _read(datum, rows_of(written))
    parsed.rows = [resolved(row, rows_of(written), rows_of(schema)) for row in parsed.rows]
    return parsed


def _read(record: bytes, known: Rows) -> Parsed:
    """One datum."""
    parsed = Parsed(many=known.many, maps_of_arrays=False)
    datum = _Datum(record, known)
    try:
        if known.many:
            while count := datum.block()[0]:
                datum.claim(count)
                for _ in range(count):
                    parsed.rows.append(datum.row())
        else:
            row = datum.row()
        if datum.at != len(record):
            raise BrokenRecord(f"{len(record) - datum.at} bytes behind the end")
        if not known.many:
            parsed.rows.append(row)
    except BrokenRecord as broken:
        parsed.broken, parsed.broken_field = str(broken), datum.field
    return parsed


def resolved(row: Pairs, writer: Rows, reader: Rows) -> Pairs:
    """A writer's row as the reader's schema names its fields, with that one's defaults."""
    given = {field["name"] for field in writer.row["fields"]}
    names, defaults = {}, Pairs()
    for field in reader.row["fields"]:
        written = next((name for name in (field["name"], *field.get("aliases", ())) if name in given), None)
        if written is not None:
            names[written] = field["name"]
        elif "default" in field:
            defaults.append((field["name"], _default_cell(field["type"], field["default"])))
    return Pairs([*((names.get(name, name), value) for name, value in row), *defaults])


def _default_cell(given: Type, default: Any) -> Any:
    found = given[0] if isinstance(given, list) else given
    is_whole = type(default) is int
    if is_whole and kind_of(found) in ("float", "double"):
        return float(default)
    return _timed(default, logical_of(found)) if is_whole else default


class _Datum:
    """Reads values from the front to the back; `field`: that of the row that is being read."""

    def __init__(self, record: bytes, rows: Rows) -> None:
        self._record, self._rows, self._end = record, rows, len(record)
        self.at, self.field = 0, ""

    def row(self) -> Pairs:
        row = Pairs()
        for field in self._rows.row["fields"]:
            self.field = field["name"]
            row.append((field["name"], self._value(field["type"], 0)))
        self.field = ""
        return row

    def block(self) -> tuple[int, int | None]:
        """Returns how many elements follow, and in how many bytes if the block gives that."""
        count = self._number()
        size = None
        if count < 0:
            size = self._number()
            if not 0 <= size <= self._end - self.at:
                raise BrokenRecord(f"a block of {size} bytes")
        else:
            self.claim(count)
        return abs(count), size

    def claim(self, count: int) -> None:
        if count > self._end - self.at:
            raise BrokenRecord(f"a block of {count} elements, {self._end - self.at} bytes left")

    def _number(self) -> int:
        raw = 0
        for i in range(10):
            byte = self._take(1)[0]
            if i == 9 and byte > 1:
                break
            raw |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                return (raw >> 1) ^ -(raw & 1)
        raise BrokenRecord("a number of more than 64 bits")

    def _take(self, size: int) -> bytes:
        if not 0 <= size <= self._end - self.at:
            raise BrokenRecord(f"{size} bytes, {self._end - self.at} left")
        self.at += size
        return self._record[self.at - size : self.at]

    def _value(self, given: Type, depth: int) -> Any:
        found = self._rows.resolved(given)
        kind = kind_of(found)
        if isinstance(found, list):
            branch = self._number()
            if not 0 <= branch < len(found):
                raise BrokenRecord(f"branch {branch} of {len(found)}")
            return self._value(found[branch], depth)
        if kind == "null":
            return None
        if kind == "boolean":
            byte = self._take(1)[0]
            return bool(byte) if byte < 2 else Unusable("a boolean that is neither")
        if kind in ("int", "long"):
            return _timed(self._number(), logical_of(found))
        if kind in ("float", "double"):
            return struct.unpack(*(("<f", self._take(4)) if kind == "float" else ("<d", self._take(8))))[0]
        if kind == "string":
            return _text(self._take(self._number()))
        if kind == "bytes":
            return _binary(self._take(self._number()), found)
        assert isinstance(found, dict)
        if kind == "enum":
            index = self._number()
            return found["symbols"][index] if 0 <= index < len(found["symbols"]) else Unusable("no symbol")
        if kind == "fixed":
            return _binary(self._take(found["size"]), found)
        return self._record_value(found, depth) if kind == "record" else self._blocks(found, depth)

    def _record_value(self, found: dict[str, Any], depth: int) -> Pairs:
        if self._rows.fixed_bytes(found) is None:
            if depth == _DEEPEST:
                raise BrokenRecord("records nested too deep")
            depth += 1
        return Pairs((field["name"], self._value(field["type"], depth)) for field in found["fields"])

    def _blocks(self, found: dict[str, Any], depth: int) -> Any:
        """An array or a map. A block that tells its size is passed over by that, whatever is in it."""
        is_map = found["type"] == "map"
        values: Any = Pairs() if is_map else []
        bad = False
        while True:
            count, size = self.block()
            if not count:
                return Unusable("an array whose blocks are not as long as they say") if bad else values
            end = self._end
            behind = self.at + size if size is not None else None
            try:
                self._end = behind if behind is not None else end
                if not is_map and self._rows.fixed_bytes(found["items"]) == 0:
                    count = min(count, self._end)  # of what takes no bytes there may be any number
                for _ in range(count):
                    key = _text(self._take(self._number())) if is_map else None
                    value = self._value(found["values" if is_map else "items"], depth)
                    values.append((key, value) if is_map else value)
            except BrokenRecord:
                if behind is None:
                    raise
                bad = True
            finally:
                self._end = end
                self.at = behind if behind is not None else self.at


def _timed(value: int, logical: str) -> int:
    return Moment(value, MOMENTS[logical]) if logical in MOMENTS else value


def _text(raw: bytes) -> str | Unusable:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return Unusable("text that is not UTF-8")


def _binary(raw: bytes, found: Type) -> Any:
    logical = logical_of(found)
    if logical == "uuid":
        digits = raw.hex()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    if logical != "decimal" or not isinstance(found, dict):
        return Binary("bytes", raw)
    if len(raw) > _MOST_DECIMAL_BYTES:
        return Unusable(f"a decimal of {len(raw)} bytes")
    unscaled = int.from_bytes(raw, "big", signed=True)
    return float(f"{unscaled}e-{found['scale']}") if found["scale"] else unscaled


def _example(*rows: dict[str, Any]) -> bytes:
    known = rows_of(EXAMPLE_OPTIONS["schema"])
    data = b"".join(row_bytes(known, row, {}) for row in rows)
    return (number(len(rows)) + data if rows else b"") + number(0)


def _in_blocks(*rows: dict[str, Any]) -> bytes:
    """The same, each row a block that tells its size."""
    known = rows_of(EXAMPLE_OPTIONS["schema"])
    datums = [row_bytes(known, row, {}) for row in rows]
    return b"".join(number(-1) + number(len(row)) + row for row in datums) + number(0)


_ROW = {"x1": 1.5, "x2": -2000, "carrier": "AA", "late": 1}
EXAMPLES = [
    _example(_ROW),
    _example({"late": True, "carrier": "é", "x1": 0.25, "x2": 2**40, "other": [1.0, 2.0, 3.0]}),
    _example({**_ROW, "x1": 1}, {"x1": "n/a", "x2": 2}, {"x1": 7, "late": 1, "x2": 1}),
    _example({**_ROW, "other": {"a": _ROW, "b": {"x2": 3, "other": {"": {}}}}}, {**_ROW, "x1": float("nan")}),
    _example(*({**_ROW, "x3": float(i), "when": 10**i, "w": i % 3, "id": str(i)} for i in range(16))),
    _in_blocks(_ROW, {**_ROW, "carrier": "x" * 300, "late": 0}, {"x2": 5}),
    _example(),
]
