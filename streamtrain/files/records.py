"""Rows of files as records in a job's format, as `produce` would write them and `fit` takes them."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from streamtrain.columns.formats import Format
from streamtrain.columns.forms import FileRows
from streamtrain.columns.records import Record, Records, rows_of
from streamtrain.columns.rejected import Rejected, Rejecting
from streamtrain.files.blocks import Size
from streamtrain.files.reading import read_blocks
from streamtrain.files.wanted import Wanted
from streamtrain.job import Job
from streamtrain.schemas import bare_format

PACK_ROWS = 1024
RECORD_BYTES = 1 << 20
BLOCK_ROWS = 8 * PACK_ROWS


class FileRecords:
    """Read once, in order. `rows`: how many were read so far; `where` tells a record's row as people know it."""

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
        self._given = job, paths, form, limit, format
        self._rejecting = rejecting
        schema = job.schema.without_message()
        self._records = Records(schema, format or bare_format(job), "files", PACK_ROWS, RECORD_BYTES)
        self._blocks = read_blocks(paths, Wanted(schema), Size(BLOCK_ROWS, PACK_ROWS, limit), form)
        self.rows = 0
        self._firsts = array("q")  # rows before each record
        self._starts = array("q")  # of each file, rows before it
        self._names: list[str] = []

    def again(self) -> FileRecords:
        """The same rows from the first on. What was left out is left out again, and not counted."""
        again = FileRecords(*self._given)
        again._rejecting = None if self._rejecting is None else self._rejecting.again()
        return again

    def __iter__(self) -> Iterator[bytes]:
        return (record.value for record in self.records())

    def records(self) -> Iterator[Record]:
        """UserMistake, naming file and row, for a line that is none, and for rows that cannot stand in a record: for
        the first one, or with `rejecting` where it counts too many."""
        rejecting = self._rejecting
        for block in self._blocks:
            self._note(block)
            for made in self._records.blocks(block, key=None, own_keys=False, reject=rejecting is not None):
                for each in made:
                    first, self.rows = self.rows, self.rows + rows_of(each)
                    if isinstance(each, Rejected):
                        assert rejecting is not None
                        rejecting.leave_out(each)
                        continue
                    if rejecting is not None:
                        rejecting.take(each.rows)
                    self._firsts.append(first)
                    yield each
        if rejecting is not None:
            rejecting.end()

    @property
    def left_out(self) -> int:
        """How many rows no record could hold so far."""
        return 0 if self._rejecting is None else self._rejecting.found.rows

    def where(self, record: int, row: int) -> str:
        """The row of a record, both from 0, by its file and its number there."""
        number = self.number(record, row)
        file = bisect_right(self._starts, number) - 1
        return f"{self._names[file]} row {number - self._starts[file]}"

    def number(self, record: int, row: int) -> int:
        """The same row among all that are read, from 0."""
        return self._firsts[record] + row

    def _note(self, block: FileRows) -> None:
        if not block.first:
            self._starts.append(self.rows)
            self._names.append(block.name)
