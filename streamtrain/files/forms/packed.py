"""Packed records one behind the other: native/decode/packed_column.h has the wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from streamtrain.columns.column import Column
from streamtrain.columns.formats import packed
from streamtrain.columns.formats.parsed import MISSING_ENTRY, Unusable, contains_unusable
from streamtrain.columns.forms import Columns, FileRows
from streamtrain.columns.row_plan import Cells, Lists, Part, Rows
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from streamtrain.files.blocks import Size, in_blocks
from streamtrain.files.column_selection import ColumnSelection, Row
from streamtrain.files.source import Source, is_too_long, too_long

HELP = "packed records one behind the other"
SUFFIXES = (".packed",)
TEXT = False


def rows(source: Source) -> Iterator[tuple[int, Row]]:
    number = 0
    for columns in _columns(source):
        for row in range(columns.rows):
            number += 1
            yield number, {name: cells[row] for name, cells in columns.named.items()}


def blocks(source: Source, selection: ColumnSelection, size: Size) -> Iterator[FileRows]:
    if selection.by_rows:
        for block in in_blocks(source.name, rows(source), selection, size):
            yield block._replace(lines=())
        return
    first = 0
    for columns in _columns(source):
        if not first:
            selection.check(list(columns.named), source.name)
        columns = Columns(
            {name: each for name, each in columns.named.items() if name in selection.columns}, columns.rows
        )
        for start in range(0, columns.rows, max(size.rows, 1)):
            count = min(size.rows, columns.rows - start)
            if not count:
                return
            yield FileRows(columns.part(start, start + count), source.name, first)
            first += count
            size.passed(count)


def _columns(source: Source) -> Iterator[Columns]:
    """The records' columns, as lists."""
    buffer, number = b"", 0
    while True:
        size = packed.record_bytes(buffer)
        if size is None or size > len(buffer):
            if is_too_long(size or len(buffer)):
                raise too_long(f"{source.name}: record {number}")
            piece = source.read()
            if piece:
                buffer += piece
                continue
            if not buffer:
                return
            got = f"{len(buffer):,} bytes"
            raise UserMistake(f"{source.name}: record {number}: expected a whole packed record, got {got}")
        record, buffer = buffer[:size], buffer[size:]
        yield _read(packed.read(record), f"{source.name}: record {number}")
        number += 1


def _read(found: packed.Read, where: str) -> Columns:
    named: dict[str, Any] = {}
    for name, cells in found.columns:
        if isinstance(cells, Unusable) or any(_is_unusable(cell) for cell in cells):
            raise UserMistake(f"{where}: column {name}: expected cells that can be read, got others")
        named[name] = [None if cell is MISSING_ENTRY else cell for cell in cells]
    if found.broken is not None:
        raise UserMistake(f"{where}: expected a packed record, got {found.broken}")
    return Columns(named, found.rows)


def _is_unusable(cell: Any) -> bool:
    return isinstance(cell, Unusable) or (type(cell) is list and contains_unusable(cell))


class Writer:
    """A record for each batch; whole numbers keep their type."""

    LISTS = True

    def __init__(self, file: BinaryIO, path: str, parts: list[Part]) -> None:
        self._file = file
        self._schema = Schema(tuple((part.name, _column(part)) for part in parts), "mean_squared_error")

    def add(self, batch: Rows) -> None:
        if batch.count:
            named = {name: column for name, column in self._schema.columns if name in batch}
            columns = {name: self._encode(name, column, batch[name]) for name, column in named.items()}
            self._file.write(packed.record_of(columns, batch.count))

    def _encode(self, name: str, column: Column, cells: Cells) -> packed.PackedColumn:
        if isinstance(cells, Lists):
            return packed.lists_of(cells.offsets[1:] - cells.offsets[0], cells.values)
        return packed.column_of(self._schema, name, column, cells)

    def finish(self) -> None: ...

    def close(self) -> None: ...


def _column(part: Part) -> Column:
    if part.width > 1:
        return Column(kind="vector", size=part.width)
    return Column() if part.dtype.kind == "f" else Column(role="event_time")
