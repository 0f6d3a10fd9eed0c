"""Arrow IPC files and streams, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from streamtrain.columns.forms import FileRows
from streamtrain.columns.row_plan import Part, Rows
from streamtrain.errors import UserMistake
from streamtrain.files.arrow import arrow_batch, arrow_schema, batch_blocks, batch_rows, pyarrow_for
from streamtrain.files.blocks import Size
from streamtrain.files.column_selection import ColumnSelection, Row
from streamtrain.files.source import Source

HELP = "Arrow IPC, a file or a stream (extra data)"
SUFFIXES = (".arrow", ".arrows", ".feather")
TEXT = False
_FILE = b"ARROW1"  # that a file begins with


def rows(source: Source) -> Iterator[tuple[int, Row]]:
    return batch_rows(source.name, _batches(source))


def blocks(source: Source, selection: ColumnSelection, size: Size) -> Iterator[FileRows]:
    yield from batch_blocks(source.name, _batches(source), selection, size)


def count(source: Source) -> int:
    return sum(len(batch) for batch in _batches(source))


def _batches(source: Source) -> Iterator[Any]:
    pyarrow = pyarrow_for(source.name, "Arrow IPC")
    is_file = source.file.read(len(_FILE)) == _FILE
    source.file.seek(0)
    try:
        if not is_file:
            yield from pyarrow.ipc.open_stream(source.file)
            return
        with pyarrow.ipc.open_file(source.file) as file:
            for number in range(file.num_record_batches):
                yield file.get_batch(number)
    except (pyarrow.ArrowException, OSError) as error:
        raise UserMistake(f"{source.name}: not an Arrow file: {error}") from error


class Writer:
    """A file of record batches."""

    LISTS = True

    def __init__(self, file: BinaryIO, path: str, parts: list[Part]) -> None:
        self._pyarrow = pyarrow_for(path, "Arrow IPC")
        self._schema = arrow_schema(self._pyarrow, parts)
        self._writer = self._pyarrow.ipc.new_file(file, self._schema)

    def add(self, batch: Rows) -> None:
        self._writer.write_batch(arrow_batch(self._pyarrow, self._schema, batch))

    def finish(self) -> None: ...

    def close(self) -> None:
        self._writer.close()
