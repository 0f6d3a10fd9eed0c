"""pyarrow, where it is installed (extra `data`), and its batches as blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from streamtrain._native import CsvCell
from streamtrain.columns.arrow_cells import cells_of, of_arrow
from streamtrain.columns.forms import Column, Columns, FileRows, column
from streamtrain.columns.row_plan import Cells, Lists, Part, Rows
from streamtrain.errors import UserMistake
from streamtrain.files.blocks import Size, in_blocks
from streamtrain.files.column_selection import ColumnSelection, Row, iso_ms, number_of

T = TypeVar("T")
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


def batch_rows(name: str, batches: Iterator[Any], known: frozenset[str] = frozenset()) -> Iterator[tuple[int, Row]]:
    """Rows as dicts, numbered from 1; of the columns that are `known`, or of all where none is."""
    number = 0
    for batch in batches:
        names = batch.schema.names
        if known.intersection(names):
            names = [each for each in names if each in known]
        _check_names(name, names)
        columns = [_read(cells_of, name, each, batch.column(each)) for each in names]
        for row in zip(*columns, strict=True) if columns else ((),) * len(batch):
            number += 1
            yield number, dict(zip(names, row, strict=True))


def _check_names(name: str, names: list[str]) -> None:
    if doubled := sorted({each for each in names if names.count(each) > 1}):
        raise UserMistake(f"{name}: expected column names that differ, got {', '.join(doubled)} more than once")


def batch_blocks(name: str, batches: Iterator[Any], selection: ColumnSelection, size: Size) -> Iterator[FileRows]:
    """Columns as they are; rows where keys or paths ask for those."""
    first = 0
    for batch in batches:
        names = batch.schema.names
        if selection.by_rows or any(each not in names for each in selection.paths):
            listed = ((first + number - 1, row) for number, row in batch_rows(name, iter([batch]), selection.heads))
            found = in_blocks(name, listed, selection, size)
            for block in found:
                yield block._replace(first=first, lines=())
                first += len(block.rows)
            if not size.rows:
                return
            continue
        if not first:
            selection.check(names, name)
        kept = [each for each in names if each in selection.columns]
        _check_names(name, kept)
        columns = {each: _cells(name, each, batch.column(each), selection) for each in kept}
        for start in range(0, len(batch), max(size.rows, 1)):
            count = min(size.rows, len(batch) - start)
            if not count:
                return
            yield FileRows(Columns(columns, len(batch)).part(start, start + count), name, first)
            first += count
            size.passed(count)


def _cells(where: str, name: str, cells: Any, selection: ColumnSelection) -> Column:
    """A column's cells, of which texts are what the job's column wants."""
    texts, found = selection.texts(name), _read(of_arrow, where, name, cells)
    is_plain = isinstance(found, np.ndarray) and found.dtype != object
    if texts is CsvCell.TEXT or is_plain or not any(isinstance(cell, str) for cell in found):
        return column(name, found, name in selection.lists)
    found = [number_of(cell) for cell in found]
    if texts is CsvCell.TIME:
        found = [cell if moment is None else moment for cell in found for moment in [_moment(cell)]]
    return found


def _read(read: Callable[[Any], T], where: str, name: str, cells: Any) -> T:
    try:
        return read(cells)
    except UserMistake as mistake:
        raise UserMistake(f"{where}: column {name!r}: {mistake}") from None


def _moment(cell: Any) -> int | None:
    return iso_ms(cell) if isinstance(cell, str) else None


def arrow_schema(pyarrow: Any, parts: list[Part]) -> Any:
    """Returns the schema of vectorised rows: vectors are lists of fixed size."""

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
