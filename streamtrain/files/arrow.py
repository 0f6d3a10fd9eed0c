"""pyarrow, where it is installed (extra `data`), and its batches as blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamtrain._native import CsvCell
from streamtrain.columns.forms import Column, Columns, FileRows, column, of_arrow
from streamtrain.columns.row_plan import Cells, Lists, Part, Rows
from streamtrain.errors import UserMistake
from streamtrain.files.blocks import Size, in_blocks
from streamtrain.files.wanted import Row, Wanted, iso_ms, number_of

BATCH_ROWS = 8_192  # read at once


def pyarrow_for(path: str, what: str) -> Any:
    """The package with what it takes to read and write. UserMistake naming the extra where it is missing."""
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise UserMistake(f"{path}: {what} needs pyarrow: pip install 'streamtrain[data]'") from error
    return pyarrow


def batch_rows(batches: Iterator[Any]) -> Iterator[tuple[int, Row]]:
    """Rows as dicts, numbered from 1."""
    number = 0
    for batch in batches:
        for row in batch.to_pylist():
            number += 1
            yield number, row


def batch_blocks(name: str, batches: Iterator[Any], wanted: Wanted, size: Size) -> Iterator[FileRows]:
    """Columns as they are; rows where keys or paths ask for those."""
    pyarrow = pyarrow_for(name, "Arrow")
    first = 0
    for batch in batches:
        names = batch.schema.names
        if not first:
            doubled = sorted({each for each in names if names.count(each) > 1})
            if doubled:
                raise UserMistake(f"{name}: expected column names that differ, got {', '.join(doubled)} more than once")
        if wanted.by_rows or any(each not in names for each in wanted.paths):
            listed = ((first + number, row) for number, row in enumerate(batch.to_pylist()))
            found = in_blocks(name, listed, wanted, size)
            for block in found:
                yield block._replace(first=first, lines=())
                first += len(block.rows)
            if not size.rows:
                return
            continue
        if not first:
            wanted.check(names, name)
        kept = {each: batch.column(each) for each in names if each in wanted.columns}
        for start in range(0, len(batch), max(size.rows, 1)):
            count = min(size.rows, len(batch) - start)
            if not count:
                return
            part = {each: _cells(pyarrow, each, cells.slice(start, count), wanted) for each, cells in kept.items()}
            yield FileRows(Columns(part, count), name, first)
            first += count
            size.passed(count)


def _cells(pyarrow: Any, name: str, cells: Any, wanted: Wanted) -> Column:
    """A column's cells, of which texts are what the job's column wants."""
    types, texts = pyarrow.types, wanted.texts(name)
    if types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    is_text = types.is_string(cells.type) or types.is_large_string(cells.type)
    if texts is CsvCell.TEXT or not is_text:
        return column(name, of_arrow(cells), name in wanted.lists)
    found = [number_of(cell) for cell in cells.to_pylist()]
    if texts is CsvCell.TIME:
        found = [cell if moment is None else moment for cell in found for moment in [_moment(cell)]]
    return found


def _moment(cell: Any) -> int | None:
    return iso_ms(cell) if isinstance(cell, str) else None


def arrow_schema(pyarrow: Any, parts: list[Part]) -> Any:
    """Of vectorised rows: vectors are lists of fixed size."""

    def type_of(part: Part) -> Any:
        plain = pyarrow.from_numpy_dtype(part.dtype)
        if part.block.ragged:
            return pyarrow.list_(plain)
        return plain if part.width == 1 else pyarrow.list_(plain, part.width)

    return pyarrow.schema([pyarrow.field(part.name, type_of(part), nullable=False) for part in parts])


def arrow_batch(pyarrow: Any, schema: Any, rows: Rows) -> Any:
    """A batch of vectorised rows."""

    def array(cells: Cells, kind: Any) -> Any:
        if isinstance(cells, Lists):
            values = pyarrow.array(cells.values, kind.value_type)
            return pyarrow.ListArray.from_arrays(pyarrow.array(cells.offsets, pyarrow.int32()), values)
        if cells.ndim == 1:
            return pyarrow.array(cells, kind)
        flat = pyarrow.array(cells.reshape(-1), kind.value_type)
        return pyarrow.FixedSizeListArray.from_arrays(flat, cells.shape[1])

    return pyarrow.record_batch([array(cells, schema.field(name).type).cast(schema.field(name).type)
                                 for name, cells in rows.items()], schema=schema)  # fmt: skip
