"""Parquet files, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any, BinaryIO

from streamtrain.columns.forms import FileRows
from streamtrain.columns.row_plan import Part, Rows
from streamtrain.errors import UserMistake
from streamtrain.files.arrow import BATCH_ROWS, arrow_batch, arrow_schema, batch_blocks, batch_rows, pyarrow_for
from streamtrain.files.blocks import Size
from streamtrain.files.column_selection import ColumnSelection, Row
from streamtrain.files.source import Source

HELP = "Parquet (extra data)"
SUFFIXES = (".parquet",)
TEXT = False
_GROUP_BATCHES = 16


def rows(source: Source) -> Iterator[tuple[int, Row]]:
    return batch_rows(source.name, _batches(source))


def blocks(source: Source, selection: ColumnSelection, size: Size) -> Iterator[FileRows]:
    yield from batch_blocks(source.name, _batches(source, selection.heads), selection, size)


def count(source: Source) -> int:
    pyarrow = pyarrow_for(source.name, "Parquet")
    try:
        with pyarrow.parquet.ParquetFile(source.file) as file:
            return int(file.metadata.num_rows)
    except (pyarrow.ArrowException, OSError) as error:
        raise UserMistake(f"{source.name}: not a Parquet file: {error}") from error


def _batches(source: Source, columns: Set[str] | None = None) -> Iterator[Any]:
    """Yields batches of the file with only these columns, or with all if the file has none of them."""
    pyarrow = pyarrow_for(source.name, "Parquet")
    try:
        with pyarrow.parquet.ParquetFile(source.file) as file:
            chosen = None if columns is None else [name for name in file.schema_arrow.names if name in columns]
            yield from file.iter_batches(batch_size=BATCH_ROWS, columns=chosen or None, use_threads=False)
    except (pyarrow.ArrowException, OSError) as error:
        raise UserMistake(f"{source.name}: not a Parquet file: {error}") from error


class Writer:
    """A row group for some batches."""

    LISTS = True

    def __init__(self, file: BinaryIO, path: str, parts: list[Part]) -> None:
        self._pyarrow = pyarrow_for(path, "Parquet")
        self._schema = arrow_schema(self._pyarrow, parts)
        self._writer = self._pyarrow.parquet.ParquetWriter(file, self._schema)
        self._pending: list[Any] = []

    def add(self, batch: Rows) -> None:
        self._pending.append(arrow_batch(self._pyarrow, self._schema, batch.kept()))
        if len(self._pending) >= _GROUP_BATCHES:
            self._write()

    def finish(self) -> None:
        self._write()

    def close(self) -> None:
        self._writer.close()

    def _write(self) -> None:
        self._writer.write_table(self._pyarrow.Table.from_batches(self._pending, self._schema))
        self._pending = []
