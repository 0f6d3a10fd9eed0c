"""Rows of files as records in a job's format, as `produce` would write them and `fit` takes them."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from streamtrain.columns.formats import Format
from streamtrain.columns.forms import FileRows
from streamtrain.columns.record_encoding import Record, Records, RowRecords
from streamtrain.columns.rejected import Rejected, Rejecting
from streamtrain.files.blocks import Size
from streamtrain.files.column_selection import ColumnSelection
from streamtrain.files.reading import read_blocks
from streamtrain.job import Job
from streamtrain.schemas import bare_format

PACK_ROWS = 1024
RECORD_BYTES = 1 << 20
BLOCK_ROWS = 8 * PACK_ROWS


class FileRecords(RowRecords):
    """The rows of files as records."""

    def __init__(
        self,
        job: Job,
        paths: Sequence[str],
        form: str | None = None,
        limit: int | None = None,
        format: Format | None = None,
        rejecting: Rejecting | None = None,
    ) -> None:
        """`format`: another than the job's, without a registry's frame. `rejecting`: counts and leaves out the rows
        that no record can hold, which are mistakes without it."""
        self._again = job, paths, form, limit, format
        schema = job.schema.without_message()
        records = Records(schema, format or bare_format(job), "files", PACK_ROWS, RECORD_BYTES, are_messages=False)
        super().__init__(records, paths, rejecting)
        self._files = read_blocks(paths, ColumnSelection(schema), Size(BLOCK_ROWS, PACK_ROWS, limit), form)
        self._starts = array("q")  # of each file, rows before it
        self._names: list[str] = []

    def again(self) -> FileRecords:
        """The same rows from the first on. What was left out is left out again, and not counted."""
        again = FileRecords(*self._again)
        again._rejecting = None if self._rejecting is None else self._rejecting.again()
        return again

    def _blocks(self) -> Iterator[Iterable[Record | Rejected]]:
        """UserMistake, naming file and row, for a line that is none."""
        for block in self._files:
            self._note(block)
            yield from self._of(block)

    def where(self, record: int, row: int) -> str:
        """The row of a record, both from 0, by its file and its number there."""
        number = self.number(record, row)
        file = bisect_right(self._starts, number) - 1
        return f"{self._names[file]} row {number - self._starts[file]}"

    def _note(self, block: FileRows) -> None:
        if not block.first:
            self._starts.append(self.rows)
            self._names.append(block.name)
