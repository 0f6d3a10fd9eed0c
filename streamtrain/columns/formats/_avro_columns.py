"""Which Avro types a column can be given by, asked before any record is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamtrain.columns.column import Column
from streamtrain.columns.formats.avro_schema import MOMENTS, Rows, Type, kind_of, logical_of
from streamtrain.columns.paths import Path
from streamtrain.columns.schema import Schema
from streamtrain.registry import nearest

_ODD = {"record": "a record", "array": "an array", "map": "a map", "bytes": "bytes", "fixed": "bytes"}


def mistakes(columns: Schema, rows: Rows) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of columns that no record of the schema can give."""
    fields = {str(field["name"]): field["type"] for field in rows.row["fields"]}
    for name, column in columns.columns:
        if name not in columns.record_names:
            continue
        if column.path is not None:
            found = _at(rows, columns.paths[name])
            if not found:
                yield name, f"path: expected a field of the schema's, within records alone, got none at {column.path}"
                continue
        elif name not in fields:
            near = nearest(name, list(fields))
            hint = f"; did you mean {near!r}?" if near else ""
            yield name, f"expected a field of the schema's {rows.row['name']}, got none named {name!r}{hint}"
            continue
        else:
            found = [fields[name]]
        problems = [_of_cell(rows, column, branch) for each in found for branch in _branches(rows, each)]
        if not problems or all(problems):
            got = problems[0] if problems else "null alone"
            yield name, f"expected a field of the schema that the column can take, got {got}"


def _branches(rows: Rows, given: Type) -> list[Type]:
    """Returns the types that a value may have, other than null."""
    found = rows.resolved(given)
    branches = found if isinstance(found, list) else [found]
    return [each for each in map(rows.resolved, branches) if kind_of(each) != "null"]


def _at(rows: Rows, path: Path) -> list[Type]:
    """The types of the fields that a path leads to, through records; none where it leads nowhere."""
    found: list[Type] = [rows.row]
    for step in path:
        records = [each for given in found for each in _branches(rows, given) if kind_of(each) == "record"]
        found = [field["type"] for record in records if isinstance(record, dict) for field in record["fields"]
                 if field["name"] == step]  # fmt: skip
    return found


def _of_cell(rows: Rows, column: Column, given: Type) -> str:
    """The same as problem(), of a list by its elements."""
    form = column.entry.cells(column)
    if form == "value":
        return problem(column, given)
    if kind_of(given) != "array" or form == "pairs":
        return "pairs, which Avro has none of" if form == "pairs" else f"no list ({kind_of(given)})"
    assert isinstance(given, dict)
    problems = [problem(column, branch) for branch in _branches(rows, given["items"])]
    return "" if problems and not all(problems) else f"a list of {problems[0] if problems else 'null alone'}"


def problem(column: Column, given: Type) -> str:
    """Returns what a type holds that the column cannot take; "" if the column can take it."""
    entry: Any = column.entry
    kind, logical = kind_of(given), logical_of(given)
    unit = entry.time_unit(column)
    if kind in ("bytes", "fixed") and not logical and entry.takes_bytes(column):
        return ""
    if kind in _ODD and logical not in ("decimal", "uuid"):
        return _ODD[kind]
    if kind in ("string", "enum") or logical == "uuid":
        return "" if entry.takes_text(column) else f"text ({kind})"
    if unit is None:
        return ""
    if kind == "boolean":
        return "a boolean"
    if logical.startswith("local-"):
        return f"{logical}, of which no zone is known"
    if logical.startswith("time-"):
        return f"{logical}, a time of any day"
    logical_unit = MOMENTS.get(logical)
    if logical_unit is not None and column.unit is not None and logical_unit != unit:
        return f'{logical} where unit = "{column.unit}"'
    return ""
