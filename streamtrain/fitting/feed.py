"""The rows of a program as records of a source in memory: what the thread named source does in `fit`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from streamtrain import _native
from streamtrain.columns.record_encoding import Record, Records, RowRecords
from streamtrain.columns.rejected import Rejecting
from streamtrain.errors import UserMistake
from streamtrain.files.file_records import PACK_ROWS, RECORD_BYTES, FileRecords
from streamtrain.job import Job
from streamtrain.schemas import bare_format

_PUT_S = 0.5


class Feed:
    """Feeds `source` until the rows end or leave() is called. One thread runs it, any may call leave().

    `rejecting` counts and leaves out the rows that no record can hold.
    """

    def __init__(self, job: Job, rejecting: Rejecting) -> None:
        self._job = job
        self.rejecting = rejecting
        self.source = _native.MemorySource()
        self._left = threading.Event()
        self.pass_records = 0  # of one pass over the rows; 0 while that is not known
        self._passes: list[FileRecords | RowRecords] = []

    @property
    def left_out(self) -> int:
        """Returns how many rows of all passes no record could hold so far."""
        return sum(each.left_out for each in self._passes)

    def where(self, record: int, row: int) -> str:
        """Returns how people call a record's row: its number among the program's rows, or its place in its file."""
        return self._passes[0].where(record % (self.pass_records or record + 1), row)

    def number(self, record: int, row: int) -> int | None:
        """A row's number among all rows, from 0; None where it was there in a pass before."""
        if self.pass_records and record >= self.pass_records:
            return None
        return self._passes[0].number(record, row)

    def run(self, rows: Any, epochs: int = 1) -> None:
        """The rows, or those of FileRecords, as records, as RecordWriter makes them; so many times, and a round ends
        with each.

        Raises UserMistake where there are none or they are no rows, and what an iterator raises.
        """
        for epoch in range(epochs):
            given = rows.again() if epoch and isinstance(rows, FileRecords) else rows
            count = 0
            last: Record | None = None
            for record in self._records(given):
                if last is not None and not self._put(last):
                    return
                last, count = record, count + 1
            if self._left.is_set():
                return
            self._note_pass(epoch, count)  # before the last record is there to be trained
            if last is None or not self._put(last):
                return
            self.source.end_round()
        self.source.end()

    def _put(self, record: Record) -> bool:
        """False once nobody takes any more."""
        while not self._left.is_set():
            if self.source.put(record.value, _PUT_S):
                return True
        return False

    def _note_pass(self, epoch: int, count: int) -> None:
        if not count:
            used = " that can be used, got none"
            none = ", got none; has the iterator been used up before?"
            raise UserMistake(f"rows: expected at least one row{used if self.rejecting.rows else none}")
        if epoch and count != self.pass_records:
            raise UserMistake(
                f"rows: expected the same in each pass, got {self.pass_records} records and in pass {epoch + 1} "
                f"{count}; have they been changed meanwhile?"
            )
        self.pass_records = count

    def _records(self, rows: Any) -> Iterator[Record]:
        if isinstance(rows, FileRecords):
            found: FileRecords | RowRecords = rows
        else:
            schema = self._job.schema.without_message()
            records = Records(schema, bare_format(self._job), "rows", PACK_ROWS, RECORD_BYTES, are_messages=False)
            given = self._until_left(rows) if isinstance(rows, Iterator) else rows
            found = RowRecords(records, given, self.rejecting.again() if self._passes else self.rejecting)
        self._passes.append(found)
        return found.records()

    def _until_left(self, rows: Iterator[Any]) -> Iterator[Any]:
        """No row more is taken of an iterator than is needed: it is the program's."""
        for row in rows:
            if self._left.is_set():
                return
            yield row

    def leave(self) -> None:
        """Ends the thread, once an iterator that holds it gives its next row."""
        self._left.set()
        self.source.close()
