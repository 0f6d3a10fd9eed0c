"""What a record means, in slow plain Python: the native decoders are tested against it.

One row at a time over a format's parse() and a kind's meaning(); every rule of native/decode/row_writer.h a second
time, on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamtrain.columns.formats import parse
from streamtrain.columns.formats.parsed import (
    MISSING_ENTRY,
    Pairs,
    Parsed,
    Unusable,
    contains_unusable,
)
from streamtrain.columns.kinds.kind import Wrong
from streamtrain.columns.schema import Schema


@dataclass
class Reference:
    """The rows of a record that train, by block, and the fate of the others."""

    blocks: dict[str, list[Any]] = field(default_factory=dict)  # of each row the cells of its columns, in their order
    trained: int = 0
    dead: list[tuple[int, str, bool]] = field(default_factory=list)  # row, path, remainder
    filtered: list[int] = field(default_factory=list)
    rows: int = 0
    newest_event_time_ms: int = -1


def decode(schema: Schema, format_name: str, record: bytes) -> Reference:
    """The record by the format's slow parse."""
    reader = _Reader(_facts(schema), check_ignored=format_name == "json")
    parsed = parse(format_name, record)
    if parsed.columns is not None:
        reader.packed(parsed)
    else:
        reader.shaped(parsed)
    return reader.out


class _Facts:
    """What a schema says, asked once for all records."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.entries = [column.entry for _, column in schema.columns]
        self.short = schema.short_columns()
        self.by_name = {name: i for i, (name, column) in enumerate(schema.columns) if schema.is_decoded(column)}
        self.missing = [schema.missing(column) for _, column in schema.columns]
        self.blocks = [block[0] for block in schema.block_specs()]


_known: dict[int, _Facts] = {}  # by the id of the schema, which they keep


def _facts(schema: Schema) -> _Facts:
    if id(schema) not in _known:
        _known[id(schema)] = _Facts(schema)
    return _known[id(schema)]


class _Reader:
    def __init__(self, facts: _Facts, check_ignored: bool) -> None:
        self.facts = facts
        self.schema = facts.schema
        self.columns = facts.schema.columns
        self.short = facts.short
        self.by_name = facts.by_name
        self.check_ignored = check_ignored
        self.out = Reference({name: [] for name in facts.blocks})

    def refuse(self, path: str) -> None:
        self.out.dead.append((self.out.rows, path, True))
        self.out.rows += 1

    def shaped(self, parsed: Parsed) -> None:
        if not parsed.many and parsed.rows and self._is_columns(parsed.rows[0]):
            return self._columns(parsed.rows[0])
        for row in parsed.rows:
            at = f"$[{self.out.rows}]" if parsed.many else "$"
            try:
                cells = self._cells(row)
            except Wrong:
                self._dead(at)
                continue
            self._row(cells, lambda name, at=at: f"{at}.{name}")
        if parsed.broken is not None:
            self.refuse(f"$[{self.out.rows}]" if parsed.many else "$")

    def packed(self, parsed: Parsed) -> None:
        assert parsed.columns is not None
        found: dict[int, list[Any]] = {}
        for name, values in parsed.columns:
            if name not in self.by_name:
                continue
            if isinstance(values, Unusable):
                return self.refuse(f"$.{name}")
            found[self.by_name[name]] = values
        if parsed.broken is not None:
            return self.refuse("$")
        self._across(found, parsed.row_count)

    def _is_columns(self, row: Any) -> bool:
        if not isinstance(row, Pairs):
            return False
        first = next((value for key, value in row if isinstance(key, str) and key in self.by_name), None)
        return type(first) is list

    def _columns(self, row: Pairs) -> None:
        found: dict[int, Any] = {}
        for key, value in row:
            if isinstance(key, str) and key in self.by_name:
                found[self.by_name[key]] = value
            elif self.check_ignored and (isinstance(key, Unusable) or contains_unusable(value)):
                return self.refuse("$")
        found = {column: found[column] for column in sorted(found) if found[column] is not None}
        lengths = [len(values) if type(values) is list else -1 for values in found.values()]
        for column, length in zip(found, lengths, strict=True):
            if length != lengths[0] or length < 0:
                return self.refuse(f"$.{self.columns[column][0]}")
        self._across(found, lengths[0] if lengths else 0)

    def _across(self, found: dict[int, list[Any]], count: int) -> None:
        for row in range(count):
            cells = [(column, values[row]) for column, values in found.items()]
            self._row(cells, lambda name, row=row: f"$.{name}[{row}]")

    def _cells(self, row: Any) -> list[tuple[int, Any]]:
        """The row's cells in the order given; Wrong if the row as a whole is no row."""
        if isinstance(row, Pairs):
            cells = []
            for key, value in row:
                if isinstance(key, str) and key in self.by_name:
                    cells.append((self.by_name[key], value))
                elif self.check_ignored and (isinstance(key, Unusable) or contains_unusable(value)):
                    cells.append((-1, value))
            return cells
        if type(row) is not list:
            raise Wrong
        order = self.short if self.short and len(row) == len(self.short) else list(range(len(self.columns)))
        if len(row) != len(order):
            raise Wrong
        ignored = set(range(len(self.columns))) - set(self.by_name.values())
        return [
            (-1 if column in ignored else column, value)
            for column, value in zip(order, row, strict=True)
            if column not in ignored or (self.check_ignored and contains_unusable(value))
        ]

    def _dead(self, path: str) -> None:
        self.out.dead.append((self.out.rows, path, False))
        self.out.rows += 1

    def _row(self, cells: list[tuple[int, Any]], path: Any) -> None:
        given: dict[int, Any] = {}
        for column, value in cells:
            if column < 0:
                return self._dead(path("").rpartition(".")[0])
            if value is None or value is MISSING_ENTRY or value == "":
                given.pop(column, None)
                continue
            try:
                given[column] = self._take(column, value)
            except (Wrong, OverflowError):
                return self._dead(path(self.columns[column][0]))
        absent = {i: self.facts.missing[i] for i in self.by_name.values() if i not in given}
        if "skip" in absent.values():
            self.out.filtered.append(self.out.rows)
            self.out.rows += 1
            return None
        for i, missing in absent.items():
            name, column = self.columns[i]
            if missing == "dead_letter":
                return self._dead(path(name))
            given[i] = self.facts.entries[i].meaning_of_missing(name, column, self.schema.loss)
        self._train(given)

    def _take(self, number: int, value: Any) -> Any:
        if not isinstance(value, bool | int | float | str):
            raise Wrong
        name, column = self.columns[number]
        return self.facts.entries[number].meaning(name, column, self.schema.loss, value)

    def _train(self, given: dict[int, Any]) -> None:
        row: dict[str, list[Any]] = {name: [] for name in self.out.blocks}
        for i, value in sorted(given.items()):
            block = self.facts.entries[i].block
            if block is not None:
                row[block].append(value)
            else:
                self.out.newest_event_time_ms = max(self.out.newest_event_time_ms, value)
        row["weight"] = row["weight"] or [np.float32(1)]
        for name, cells in row.items():
            self.out.blocks[name].append(cells)
        self.out.rows += 1
        self.out.trained += 1
