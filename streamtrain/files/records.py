"""Rows of files as records in a job's format, as `produce` would write them and `fit` takes them."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from streamtrain.columns.formats import Format
from streamtrain.columns.forms import FileRows
from streamtrain.columns.records import Record, Records
from streamtrain.files.blocks import Size
from streamtrain.files.reading import read_blocks
from streamtrain.files.wanted import Wanted
from streamtrain.job import Job
from streamtrain.schemas import bare_format

PACK_ROWS = 1024
RECORD_BYTES = 1 << 20
BLOCK_ROWS = 8 * PACK_ROWS


class FileRecords:
    """Read once, in order. `rows` are those read so far; `where` tells a record's row as people know it."""

    def __init__(
        self,
        job: Job,
        paths: Sequence[str],
        form: str | None = None,
        limit: int | None = None,
        format: Format | None = None,
    ) -> None:
        """`format`: another than the job's, without a registry's frame."""
        self._given = job, paths, form, limit, format
        schema = job.schema.without_message()
        self._records = Records(schema, format or bare_format(job), "files", PACK_ROWS, RECORD_BYTES)
        self._blocks = read_blocks(paths, Wanted(schema), Size(BLOCK_ROWS, PACK_ROWS, limit), form)
        self._ends = array("q", [0])  # rows up to the end of each record
        self._starts = array("q")  # of each file, rows before it
        self._names: list[str] = []

    def again(self) -> FileRecords:
        """The same rows from the first on."""
        return FileRecords(*self._given)

    @property
    def rows(self) -> int:
        return self._ends[-1]

    def __iter__(self) -> Iterator[bytes]:
        return (record.value for record in self.records())

    def records(self) -> Iterator[Record]:
        """UserMistake, naming file and row, for what is no row, or cannot stand in a record."""
        for block in self._blocks:
            self._note(block)
            for made in self._records.blocks(block, key=None, own_keys=False):
                for record in made:
                    self._ends.append(self._ends[-1] + record.rows)
                    yield record

    def where(self, record: int, row: int) -> str:
        """The row of a record, both from 0, by its file and its number there."""
        number = self._ends[record] + row
        file = bisect_right(self._starts, number) - 1
        return f"{self._names[file]} row {number - self._starts[file]}"

    def _note(self, block: FileRows) -> None:
        if not block.first:
            self._starts.append(self.rows)
            self._names.append(block.name)
