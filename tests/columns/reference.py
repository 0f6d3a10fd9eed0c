"""The meaning of a record in slow plain Python: the native decoders are tested against it.

One row at a time over the oracles of formats, kinds and transforms; every rule of native/decode/row_writer.h a second
time, on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from example_format import example_format

from streamtrain.columns.compiled_transforms import WHERE
from streamtrain.columns.formats import Format, is_lines
from streamtrain.columns.formats.parsed import MISSING_ENTRY, Binary, Pairs, TextHash, Unusable, contains_unusable
from streamtrain.columns.forms import Names, shows_columns
from streamtrain.columns.kinds.parsed import is_missing
from streamtrain.columns.paths import Path, place
from streamtrain.columns.pipeline import stand_in
from streamtrain.columns.schema import Schema
from streamtrain.compute.spec import DTYPES
from tests.oracles import kinds, transforms
from tests.oracles.kinds import Wrong
from tests.oracles.parsed import Parsed
from tests.oracles.plain_cells import Symbol
from tests.oracles.sparse_text import by_index, named, parse


@dataclass
class Reference:
    """The rows of a record that train, by block, and the fate of the others."""

    blocks: dict[str, list[Any]] = field(default_factory=dict)  # of each row the cells of its columns, in their order
    trained: int = 0
    dead: list[tuple[int, str, bool]] = field(default_factory=list)  # row, path, remainder
    filtered: list[int] = field(default_factory=list)
    rows: int = 0
    newest_event_time_ms: int = -1


@dataclass(frozen=True)
class Around:
    """The metadata of a record's message; empty where it is in none."""

    partition: int = 0
    offset: int = 0
    timestamp_ms: int = -1
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def cell(self, source: str) -> Any:
        """Returns the cell of a column from there; None where it is missing."""
        if source in ("partition", "offset", "timestamp"):
            number: int = getattr(self, {"timestamp": "timestamp_ms"}.get(source, source))
            return None if number < 0 else number
        values = [value for name, value in self.headers if f"headers.{name}" == source]
        raw = self.key if source == "key" else values[-1] if values else None
        try:
            return raw.decode() if raw else None
        except UnicodeDecodeError:
            return Unusable("text that is not UTF-8")


def holds_columns(schema: Schema, row: Pairs) -> bool:
    """Returns True if a record's map holds columns. Columns whose cells are lists do not decide it."""
    names = Names(schema.record_names, schema.heads, schema.lists)
    texts = (item for item in row if isinstance(item[0], str))
    return bool(shows_columns(texts, names, lambda value: type(value) is list))


_last: list[tuple[Schema, Any, Reference]] = []  # a record is compared with many slots, one after the other


def decode(schema: Schema, format_name: Format, record: bytes, around: Around | None = None) -> Reference:
    """The record by the format's slow parse."""
    arguments = str(format_name), record, around
    if not _last or _last[0][0] is not schema or _last[0][1] != arguments:
        _last[:] = [(schema, arguments, _decoded(schema, format_name, record, around))]
    return _last[0][2]


def _decoded(schema: Schema, format_name: Format, record: bytes, around: Around | None) -> Reference:
    reader = _Reader(_facts(schema), check_ignored=format_name == "json", around=around or Around())
    reader.lines = is_lines(format_name)
    parsed = parse(example_format(format_name), record, around.headers if around else ())
    reader.written = parsed.written
    if parsed.columns is not None:
        reader.packed(parsed)
    else:
        reader.shaped(parsed)
    return reader.out


class _Facts:
    """The facts of a schema, read once for all records."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.every = schema.every
        self.entries = [column.entry for _, column in schema.every]
        self.oracles = [kinds.of(column) if column.entry.decoded else None for _, column in schema.every]
        self.numbers = {name: i for i, (name, _) in enumerate(schema.every)}
        self.compiled_transforms = [
            (one, one.reads, transforms.of(one.transform)) for one in schema.compiled_transforms
        ]
        self.read = {name for one in schema.compiled_transforms for name in one.reads}
        self.outputs = {output.name: output for one in schema.compiled_transforms for output in one.columns}
        filters = schema.where is not None and not schema.requests
        self.where_columns = schema._pipeline.native(len(schema.columns))["where_columns"] if filters else []
        self.stands_in = {
            name: column.entry.read_stand_in(column, schema.loss)
            for name, column in schema.columns
            if column.has_stand_in and column.entry.holds(column) is not None
        }
        self.used_outputs = [
            i for i, (name, column) in enumerate(schema.every) if i >= len(schema.columns) and schema.is_used(column)
        ]
        self.short = schema.short_columns()
        decoded = {name: i for i, (name, column) in enumerate(schema.columns) if schema.is_decoded(name, column)}
        sources = {name: column.around for name, column in schema.columns}
        self.by_name = {name: i for name, i in decoded.items() if sources[name] is None}
        self.around = {i: sources[name] for name, i in decoded.items() if sources[name] is not None}
        self.in_arrays = [i for i, (name, _) in enumerate(schema.columns) if sources[name] is None]
        self.at = {schema.paths.get(name, (name,)): i for name, i in self.by_name.items()}
        self.above = {path[:count] for path in self.at for count in range(1, len(path))}
        self.place = {name: place(schema.paths[name]) if name in schema.paths else f".{name}" for name in decoded}
        self.by_order = {name: f".{name}" for name in decoded}  # of texts in their order, which stand nowhere else
        self.missing = [schema.missing(column) for _, column in schema.every]
        self.blocks = {block.name: DTYPES[block.dtype] for block in schema.block_specs()}


_known: dict[int, _Facts] = {}  # by the id of the schema, which they keep


def _facts(schema: Schema) -> _Facts:
    if len(_known) > 500:  # of schemas at random
        _known.clear()
    if id(schema) not in _known:
        _known[id(schema)] = _Facts(schema)
    return _known[id(schema)]


class _Reader:
    def __init__(self, facts: _Facts, check_ignored: bool, around: Around) -> None:
        self.around = [(column, around.cell(source)) for column, source in facts.around.items()]
        self.facts = facts
        self.schema = facts.schema
        self.columns = facts.schema.columns
        self.short = facts.short
        self.by_name = facts.by_name
        self.check_ignored = check_ignored
        self.written = self.lines = False
        self.out = Reference({name: [] for name in facts.blocks})

    def refuse(self, path: str) -> None:
        self.out.dead.append((self.out.rows, path, True))
        self.out.rows += 1

    def shaped(self, parsed: Parsed) -> None:
        first = parsed.rows[0] if parsed.maps_of_arrays and not parsed.many and parsed.rows else None
        if isinstance(first, Pairs) and holds_columns(self.schema, first):
            return self._columns(first)
        for given in parsed.rows:
            row = named(self.schema, given) if self.lines else given
            at = f"$[{self.out.rows}]" if parsed.many else "$"
            try:
                cells = self._cells(row)
            except Wrong:
                self._dead(at)
                continue
            places = self.facts.by_order if parsed.written and not self.lines else self.facts.place
            self._row(cells, lambda name, at=at, places=places: at + (places[name] if name else ""))
        if parsed.broken is not None:
            field = f".{parsed.broken_field}" if parsed.broken_field else ""
            self.refuse((f"$[{self.out.rows}]" if parsed.many else "$") + field)

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
            return list(self._inner(row, ()))
        if type(row) is not list:
            raise Wrong
        order = self.short if self.short and len(row) == len(self.short) else self.facts.in_arrays
        if len(row) != len(order):
            raise Wrong
        ignored = set(range(len(self.columns))) - set(self.by_name.values())
        return [
            (-1 if column in ignored else column, value)
            for column, value in zip(order, row, strict=True)
            if column not in ignored or (self.check_ignored and contains_unusable(value))
        ]

    def _inner(self, value: Any, path: Path) -> Iterator[tuple[int, Any]]:
        """Yields the cells at a path and below, in the order given: a later value replaces all of it."""
        below = [(other, i) for other, i in self.facts.at.items() if other[: len(path)] == path]
        is_array = type(below[0][0][len(path)]) is int if below else False
        if not (type(value) is list if is_array else isinstance(value, Pairs)):
            if self.check_ignored and contains_unusable(value):
                yield -1, value
            return
        for key, inner in enumerate(value) if is_array else value:
            at = (*path, key) if type(key) in (int, str) else path
            if at in self.facts.at:
                yield self.facts.at[at], inner
            elif at != path and at in self.facts.above:
                yield from ((i, None) for other, i in below if other[: len(at)] == at)
                yield from self._inner(inner, at)
            elif self.check_ignored and (isinstance(key, Unusable) or contains_unusable(inner)):
                yield -1, inner

    def _dead(self, path: str) -> None:
        self.out.dead.append((self.out.rows, path, False))
        self.out.rows += 1

    def _filtered(self) -> None:
        self.out.filtered.append(self.out.rows)
        self.out.rows += 1

    def _row(self, cells: list[tuple[int, Any]], path: Any) -> None:
        given: dict[int, Any] = {}
        read: dict[int, Any] = {}
        wrong: list[int] = []
        for column, value in [*cells, *self.around]:
            if column < 0:
                return self._dead(path(self.columns[wrong[0]][0] if wrong else ""))
            given.pop(column, None)
            if _is_missing(value):
                continue
            if isinstance(value, Symbol) and self.facts.entries[column].takes_names(self.columns[column][1]):
                value = value.name or value
            try:
                given[column] = self._take(column, value)
                if self.schema.compiled_transforms:
                    read[column] = self._read(column, value)
            except (Wrong, OverflowError):
                if not self._is_word(column, value):
                    wrong.append(column)
        output_cells = self._transformed({column: read[column] for column in given if column in read})
        filters = self.schema.where is not None and not self.schema.requests
        if filters and output_cells[WHERE] != 1 and not any(column in self.facts.where_columns for column in wrong):
            return self._filtered()
        if wrong:
            return self._dead(self.facts.around.get(wrong[0]) or path(self.columns[wrong[0]][0]))
        for i in self.facts.used_outputs:
            name = self.facts.every[i][0]
            if output_cells[name] is None:
                continue
            try:
                given[i] = self._convert_output(i, output_cells[name])
            except (Wrong, OverflowError):
                if not self._is_word(i, output_cells[name]):
                    return self._dead(f"transforms.{name}")
        decoded = [*self.by_name.values(), *self.facts.around, *self.facts.used_outputs]
        absent = {i: self.facts.missing[i] for i in sorted(decoded) if i not in given}
        heads = list(absent.values()).count("skip_head")
        if "skip" in absent.values() or 0 < heads == self.facts.missing.count("skip_head"):
            return self._filtered()
        for i, missing in absent.items():
            name, column = self.facts.every[i]
            if missing == "dead_letter":
                transform_path = f"transforms.{name}" if i in self.facts.used_outputs else None
                return self._dead(transform_path or self.facts.around.get(i) or path(name))
            if i in self.facts.used_outputs and self.facts.outputs[name].is_bucket:
                given[i] = column.missing
            elif missing != "keep":
                given[i] = self.facts.oracles[i].meaning_of_missing(name, column, self.schema.labelled.loss_of(name))
        self._train(given)

    def _take(self, number: int, value: Any) -> Any:
        name, column = self.columns[number]
        entry, oracle = self.facts.entries[number], self.facts.oracles[number]
        if isinstance(value, TextHash):
            if name in self.facts.read or entry.hashing(name, column) is None:
                raise Wrong
            return oracle.meaning_of_hash(name, column, value)
        loss = self.schema.labelled.loss_of(name)
        if (form := entry.cells(column)) != "value":
            entries = [None if self._is_word(number, each) else each for each in _elements(form, value)]
            return oracle.meaning_of_list(name, column, loss, by_index(column, entries))
        if isinstance(value, Binary) and entry.takes_bytes(column):
            return oracle.meaning(name, column, loss, value.raw)
        if not isinstance(value, bool | int | float | str):
            raise Wrong
        return oracle.meaning(name, column, loss, self._as_written(number, value))

    def _as_written(self, number: int, value: Any) -> Any:
        """A cell; of a text-only format what its text stands for."""
        name, column = self.columns[number]
        if self.written and isinstance(value, str) and number not in self.facts.around:
            return self.facts.oracles[number].written(column, self.schema.labelled.loss_of(name), value)
        return value

    def _is_word(self, number: int, value: Any) -> bool:
        column = self.facts.every[number][1]
        return column.entry.has_missing_words(column) and is_missing(value, self.schema.missing_words)

    def _read(self, number: int, value: Any) -> Any:
        """A cell as transforms read it; None of what they do not."""
        name, column = self.columns[number]
        if self.facts.entries[number].holds(column) is None or isinstance(value, TextHash):
            return None
        loss = self.schema.labelled.loss_of(name)
        return self.facts.oracles[number].read(name, column, loss, self._as_written(number, value))

    def _transformed(self, read: dict[int, Any]) -> dict[str, Any]:
        """Returns what transforms make of the row's cells, by column, before anything stands in for what is missing."""
        cells: dict[str, Any] = {}
        given: dict[str, bool] = {}
        output_cells: dict[str, Any] = {}
        for name, _ in self.columns if self.facts.compiled_transforms else ():
            i = self.facts.numbers[name]
            given[name] = i in read
            cells[name] = read.get(i, self.facts.stands_in.get(name))
        for one, reads, meaning in self.facts.compiled_transforms:
            there = [given[name] for name in reads]
            results = meaning(one.use, [cells[name] for name in reads], there)
            for each, cell in zip(one.columns, results, strict=True):
                output_cells[each.name], given[each.name] = cell, cell is not None
                stands_in = each.column.has_stand_in and cell is None
                cells[each.name] = stand_in(each, one, self.schema.labelled.loss_of(each.name)) if stands_in else cell
        return output_cells

    def _convert_output(self, number: int, cell: Any) -> Any:
        """A transform's cell in its block."""
        (name, column), oracle = self.facts.every[number], self.facts.oracles[number]
        output = self.facts.outputs[name]
        if output.is_bucket:
            return int(cell)
        if output.result.holds == "hash":
            bits, seed = column.entry.hashing(name, column)
            return oracle.meaning_of_hash(name, column, TextHash(cell, bits, seed))
        return oracle.meaning(name, column, self.schema.labelled.loss_of(name), cell)

    def _train(self, given: dict[int, Any]) -> None:
        row: dict[str, list[Any]] = {name: [] for name in self.out.blocks}
        for i, value in sorted(given.items()):
            name, column = self.facts.every[i]
            places = self.schema.labelled.places(name, column)
            if isinstance(value, list):
                for block, entries in zip(places, value, strict=True):
                    row[block] += entries
            elif places:
                row[places[0]].append(value)
            elif column.role == "event_time":
                self.out.newest_event_time_ms = max(self.out.newest_event_time_ms, value)
        row["weight"] = row["weight"] or [np.float32(1)]
        for name, cells in row.items():
            rounded = self.facts.blocks[name] is np.float32
            self.out.blocks[name].append([np.float32(cell) for cell in cells] if rounded else cells)
        self.out.rows += 1
        self.out.trained += 1


def _is_missing(value: Any) -> bool:
    return value is None or value is MISSING_ENTRY or value == "" or (isinstance(value, float) and value != value)


def _elements(form: str, value: Any) -> list[Any]:
    """A list's elements, those that are missing as None. Wrong for what is no list, or holds what is no cell."""
    if isinstance(value, Pairs) and form == "pairs":
        value = [[key, inner] for key, inner in value]
    if type(value) is not list:
        raise Wrong
    return [_element(form, each) for each in value]


def _element(form: str, value: Any) -> Any:
    if type(value) is list and form == "pairs":
        return [_element("list", part) for part in value]
    if _is_missing(value):
        return None
    if not isinstance(value, bool | int | float | str | TextHash):
        raise Wrong
    return value
