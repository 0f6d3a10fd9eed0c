"""Avro records, slowly: what the native decoder and encoder are tested against."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from streamtrain.columns.formats.avro_schema import (
    Rows,
    Type,
    canonical,
    kind_of,
    logical_of,
    rows_of,
)
from streamtrain.columns.formats.parsed import BrokenRecord, Pairs
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from streamtrain.files.avro_datum import Datum, timed
from tests.oracles.avro_values import number, row_bytes
from tests.oracles.frame import Ask, datum_of, prefix
from tests.oracles.parsed import Parsed
from tests.oracles.plain_cells import each_row

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


def encode_rows(
    columns_of: Schema, rows: Sequence[Any], *, schema: str, frame: str = "none", schema_id: int = 0, **others: Any
) -> bytes:
    """Rows as they are, one record: each a map. UserMistake for what the schema cannot hold."""
    before, known = prefix(frame, schema_id), rows_of(schema)
    if not known.many and len(rows) != 1:
        raise UserMistake(f"avro: expected one row for a record of the schema {known.row['name']}, got {len(rows)}")
    columns = dict(columns_of.columns)
    units = {name: column.entry.time_unit(column) for name, column in columns.items()}
    datums = each_row("avro", rows, columns, lambda row: row_bytes(known, row, units))
    if not known.many:
        return before + datums[0]
    return before + (number(len(datums)) if datums else b"") + b"".join(datums) + number(0)


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
        datum, its_schema = datum_of(record, header, schemas)
    except BrokenRecord as broken:
        return Parsed(broken=str(broken), maps_of_arrays=False)
    parsed = _read(datum, rows_of(its_schema))
    parsed.rows = [resolved(row, rows_of(its_schema), rows_of(schema)) for row in parsed.rows]
    return parsed


def _read(record: bytes, known: Rows) -> Parsed:
    """One datum."""
    parsed = Parsed(many=known.many, maps_of_arrays=False)
    datum = Datum(record, known)
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
    return timed(default, logical_of(found)) if is_whole else default


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


def holds_many(schema: str, **others: Any) -> bool:
    """Returns True if a record may hold many rows."""
    return rows_of(schema).many


def schema_of(fields: Mapping[str, str]) -> str:
    """A schema of rows with these fields, each a "number" or a "text"."""
    types = {"number": "double", "text": "string"}
    row = [{"name": name, "type": types[kind]} for name, kind in fields.items()]
    return canonical(json.dumps({"type": "record", "name": "Row", "fields": row}))
