"""The rows of a program as records of a source in memory: what the thread named source does in `fit`."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterator
from typing import Any

from streamtrain import _native
from streamtrain.columns.records import Record, Records
from streamtrain.errors import UserMistake
from streamtrain.files.records import PACK_ROWS, RECORD_BYTES, FileRecords
from streamtrain.job import Job
from streamtrain.schemas import bare_format

_PUT_S = 0.5


class Feed:
    """Feeds `source` until the rows end or leave() is called. One thread runs it, any may call leave()."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.source = _native.MemorySource()
        self._left = threading.Event()
        self._ends = array("q", [0])  # of each record, the number of the row after its last
        self._files: FileRecords | None = None

    def where(self, record: int, row: int) -> str:
        """What people call a record's row: its number among the program's rows, or in its file."""
        return f"row {self._ends[record] + row}" if self._files is None else self._files.where(record, row)

    def run(self, rows: Any) -> None:
        """The rows, or those of FileRecords, as records, as RecordWriter makes them.

        Raises UserMistake where there are none or they are no rows, and what an iterator raises.
        """
        self._files = rows if isinstance(rows, FileRecords) else None
        for record in self._made(rows) if self._files is None else self._files.records():
            self._ends.append(self._ends[-1] + record.rows)
            while not self._left.is_set() and not self.source.put(record.value, _PUT_S):
                pass
            if self._left.is_set():
                return
        if len(self._ends) == 1 and not self._left.is_set():
            raise UserMistake("rows: expected at least one, got none; has the iterator been used up before?")
        self.source.end()

    def _made(self, rows: Any) -> Iterator[Record]:
        job = self._job
        records = Records(job.schema.without_message(), bare_format(job), "rows", PACK_ROWS, RECORD_BYTES)
        given = self._while_wanted(rows) if isinstance(rows, Iterator) else rows
        for block in records.blocks(given, key=None, own_keys=False):
            yield from block

    def _while_wanted(self, rows: Iterator[Any]) -> Iterator[Any]:
        """No row more is taken of an iterator than is needed: it is the program's."""
        for row in rows:
            if self._left.is_set():
                return
            yield row

    def leave(self) -> None:
        """Ends the thread, once an iterator that holds it gives its next row."""
        self._left.set()
        self.source.close()
