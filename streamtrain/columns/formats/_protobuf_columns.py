"""Which Protobuf fields a column can be given by, asked before any record is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from streamtrain.columns.column import Column
from streamtrain.columns.formats.protobuf_schema import Field, Message, Messages
from streamtrain.columns.paths import Path, place
from streamtrain.columns.schema import Schema
from streamtrain.registry import nearest

WHOLE = ("message", "bytes", "timestamp")  # of which many are no list of cells
_ARTICLES = {"bytes": "bytes", "enum": "an enum", "int32": "an int32", "int64": "an int64", "timestamp": "a Timestamp"}


def mistakes(columns: Schema, known: Messages, row: Message) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of columns that no record of the schema can give."""
    for name, column in columns.columns:
        if name not in columns.record_names:
            continue
        found = _at(known, row, columns.paths.get(name, (name,)))
        if found is None and column.path is not None:
            yield name, f"path: expected a field of the schema's, within messages alone, got none at {column.path}"
        elif found is None:
            near = nearest(name, [field.name for field in row.fields.values()])
            hint = f"; did you mean {near!r}?" if near else ""
            yield name, f"expected a field of the schema's {row.name}, got none named {name!r}{hint}"
        elif wrong := problem(column, found):
            hint = _hint(known, found, columns.paths.get(name, (name,)))
            yield name, f"expected a field of the schema that the column can take, got {wrong}{hint}"


def _hint(known: Messages, found: Field, path: Path) -> str:
    """Names the value within a message of nothing else, such as google.protobuf.DoubleValue."""
    if found.type != "message" or found.repeated:
        return ""
    if [each.name for each in known.by_name[found.of].fields.values()] != ["value"]:
        return ""
    return f'; its value stands at path = "{place((*path, "value")).removeprefix(".")}"'


def _at(known: Messages, row: Message, path: Path) -> Field | None:
    """The field that a path leads to, through messages; None where it leads nowhere."""
    within: Message | None = row
    found: Field | None = None
    for step in path:
        found = next((field for field in within.fields.values() if field.name == step), None) if within else None
        if found is None:
            return None
        within = known.by_name[found.of] if found.type == "message" and not found.repeated else None
    return found


def problem(column: Column, field: Field) -> str:
    """Returns what a field holds that the column cannot take; "" if the column can take it."""
    entry: Any = column.entry
    if entry.cells(column) == "list":
        if not field.repeated or field.type in WHOLE:
            return f"many of {article(replace(field, repeated=False))}" if field.repeated else f"no list ({field.type})"
        return "" if field.type != "string" or entry.takes_text(column) else "many of text (string)"
    if field.type == "bytes" and not field.repeated and entry.takes_bytes(column):
        return ""
    if field.repeated or field.type in ("message", "bytes"):
        return "bytes" if field.type == "bytes" else article(field)
    if field.type == "string":
        return "" if entry.takes_text(column) else "text (string)"
    if field.type == "bool" and entry.time_unit(column) is not None:
        return "a bool"
    return ""


def article(field: Field) -> str:
    """A field's type in words."""
    if field.repeated:
        return "many values"
    return _ARTICLES.get(field.type, f"a {field.type}")
