"""The rows of a record, to show them or to send them again: JSON and msgpack as they are, else the columns' cells by
the native decoder, which decides in any format what a row is. No process of training or prediction uses it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgpack

from streamtrain import _native
from streamtrain.columns.column import Column
from streamtrain.columns.formats import Format
from streamtrain.columns.formats.parsed import Unusable
from streamtrain.columns.forms import Names, is_columns
from streamtrain.columns.paths import nested, place
from streamtrain.columns.record_encoding import Records
from streamtrain.columns.schema import Schema

_SCRATCH_ROWS = 1024
_MAX_RECORD_BYTES = 1 << 30


@dataclass(frozen=True)
class RecordRows:
    """Row k of the record is `rows[k]`: a dict of its cells, or an Unusable. `broken`: why no more can be read."""

    rows: list[Any]
    broken: str | None = None


@dataclass
class Fates:
    """The rows of a record that do not train: where a dead one cannot be used, which ones are left out."""

    dead: dict[int, str] = field(default_factory=dict)
    filtered: set[int] = field(default_factory=set)


def row_counter(schema: Schema, format_name: Format) -> _native.BatchFiller:
    """The decoder, for its count()."""
    layout = _native.SlotLayout.make(_SCRATCH_ROWS, 1, schema.block_specs())
    return _native.BatchFiller(format_name, schema.native_plan(layout))


def row_fates(schema: Schema, format_name: Format, record: bytes, around: _native.RecordAround) -> Fates:
    """Returns what happens to a record's rows in such a message, from the decoder.

    The rest of a record that cannot be decoded is one dead row. Adjacent dead rows with the same reason have the first
    one's path.
    """
    tally = row_counter(schema, format_name).count([record], around=[around])
    fates = Fates()
    for row_from, row_to, path, *_ in tally.dead_rows:
        fates.dead |= dict.fromkeys(range(row_from, row_to), path)
    for row_from, row_to, _ in tally.filtered_rows:
        fates.filtered |= set(range(row_from, row_to))
    return fates


class RowReader:
    """Reads the rows of one job's records. One thread at a time."""

    def __init__(self, schema: Schema, format_name: Format, texts: bool = False) -> None:
        """`texts`: cells of a format that has nothing but texts stay texts, even in columns of numbers."""
        self._paths, self._names, self._format = schema.paths, Names.of(schema), name_of(format_name)
        self._decoded = _native_reader(schema, format_name, schema.decoded_names, texts)
        others = [name for name, column in schema.columns if not schema.is_decoded(name, column)]
        self._every = _native_reader(schema, format_name, dict(schema.columns), texts) if others else None

    def rows(self, record: bytes, headers: Iterable[tuple[str, bytes | None]] = ()) -> RecordRows:
        """Returns what record_rows() does."""
        found, dead = self._read(record, _native.RecordAround(0, 0, -1, None, list(headers)))
        broken, unusable = None, dict[int, Unusable]()
        for row_from, row_to, path, reason, is_rest in dead:
            if is_rest:
                broken = reason
                continue
            unusable |= dict.fromkeys(range(row_from, row_to), Unusable(f"{path}: {reason}", path=path))
        count = len(found) + len(unusable)
        cells = iter(found)
        rows = [unusable.get(row) or self._row(next(cells)) for row in range(count)]
        documents = [] if broken else self._documents(record, count)
        if len(documents) == count:
            rows = [given if isinstance(given, dict) else row for given, row in zip(documents, rows, strict=True)]
        return RecordRows(rows, broken)

    def _read(self, record: bytes, around: _native.RecordAround) -> tuple[list[dict[str, Any]], list[Any]]:
        """Rows with the cells of every column, where those that no decoder reads change nothing of what a row is."""
        found = self._decoded.read(record, around)
        every = found if self._every is None else self._every.read(record, around)
        return every if len(every[0]) == len(found[0]) and every[1] == found[1] else found

    def _documents(self, record: bytes, count: int) -> list[Any]:
        """The rows of a JSON or msgpack record as they are, of which those by name are dicts; of other formats none."""
        found = document(self._format, record)
        if isinstance(found, dict) and is_columns(found, self._names):
            whole = {name: cells for name, cells in found.items() if isinstance(cells, list) and len(cells) == count}
            return [nested({name: cells[row] for name, cells in whole.items()}, self._paths) for row in range(count)]
        return found if isinstance(found, list) else [found]

    def _row(self, cells: dict[str, Any]) -> dict[str, Any]:
        return nested({name: _plain(cell) for name, cell in cells.items()}, self._paths)


def name_of(format: Format) -> str:
    return format if isinstance(format, str) else str(format["name"])


def document(format: str, record: bytes) -> Any:
    """The value that a JSON or msgpack record is, a list of several JSON ones; None of what is none, or of others."""
    try:
        return _LIBRARIES[format].loads(record) if format in _LIBRARIES else None
    except (ValueError, RecursionError, msgpack.UnpackException):  # what the decoder says of the record counts
        return None


def _from_json(record: bytes) -> Any:
    """ValueError for what is no JSON, and for half a surrogate pair."""
    text = record[{0: 5, 1: 17}.get(record[0], 0) :] if record else b""  # behind a registry's frame
    try:
        found = json.loads(text)
    except ValueError:
        found = [json.loads(line) for line in text.splitlines() if line.strip()]
    _to_json(found)
    return found


def _to_json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


class _Library(NamedTuple):
    loads: Callable[[bytes], Any]
    dumps: Callable[[Any], bytes]


_LIBRARIES = {"json": _Library(_from_json, _to_json), "msgpack": _Library(msgpack.unpackb, msgpack.packb)}


def _native_reader(schema: Schema, format: Format, names: Collection[str], texts: bool) -> _native.RowReader:
    """A reader of the columns of these names, but for those that are not in the record."""
    columns = [
        _placed(schema, name, column) | (_described(column, texts) if name in names and column.around is None else {})
        for name, column in schema.columns
    ]
    widths = Counter(column.get("block", "none") for column in columns)
    layout = _native.SlotLayout.make(_SCRATCH_ROWS, 1, [(name, "i32", each) for name, each in widths.items()])
    return _native.RowReader(format, columns, schema.short_columns(), layout)


def _placed(schema: Schema, name: str, column: Column) -> dict[str, Any]:
    """A column as _native.RowReader passes it over."""
    path = schema.paths.get(name)
    where: dict[str, Any] = {} if path is None else {"path": list(path), "place": place(path)}
    return {"name": name, "kind": None, **where, **({} if column.around is None else {"from": column.around})}


def _described(column: Column, texts: bool) -> dict[str, Any]:
    """The rest of a column as it reads it."""
    entry, spaces = column.entry, getattr(column, "namespaces", None)
    return {
        "block": column.role, "cells": entry.cells(column), "is_text": texts or entry.is_text(column),
        "takes_names": entry.takes_names(column), "unit": entry.time_unit(column),
        "namespaces": None if spaces is None else list(spaces),
    }  # fmt: skip


def _plain(cell: Any) -> Any:
    """A cell of the native reader, which has a tuple for the hash of a text."""
    if isinstance(cell, list):
        return [_plain(inner) for inner in cell]
    return Unusable("the hash of a text") if isinstance(cell, tuple) else cell


def record_rows(
    schema: Schema, format_name: Format, record: bytes, headers: Iterable[tuple[str, bytes | None]] = ()
) -> RecordRows:
    """Returns the rows of a record, in a message with these headers.

    A row by name of JSON or msgpack is the document; any other the cells of the schema's columns, without missing ones,
    at their paths."""
    return RowReader(schema, format_name).rows(record, headers)


def encode_records(format: Format, schema: Schema, rows: Sequence[dict[str, Any]]) -> list[bytes]:
    """Rows as record_rows() has them in as few records as may be. UserMistake for one that no record can hold."""
    library, options = _LIBRARIES.get(name_of(format)), {} if isinstance(format, str) else format
    if library is not None:
        id = options.get("schema_id", 0) if options.get("frame") == "registry" else None
        before = b"" if id is None else b"\0" + int(id).to_bytes(4, "big")
        return [before + library.dumps(rows[0] if len(rows) == 1 else list(rows))]
    records = Records(schema, format, "rows", max(len(rows), 1), _MAX_RECORD_BYTES)
    return [record.value for block in records.blocks(list(rows), None, False) for record in block]


def hidden_cell(row: dict[str, Any]) -> str | None:
    """Returns where a row of record_rows() has a cell that cannot be written again, and why; None if it has none."""
    for name, value in row.items():
        cells = value if isinstance(value, list) else [value]
        if (found := next((cell for cell in cells if isinstance(cell, Unusable)), None)) is not None:
            return f"$.{name} ({found.reason})"
    return None
