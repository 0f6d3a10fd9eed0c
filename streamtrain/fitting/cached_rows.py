"""A program's rows, or those of files, that are gone over again and again."""

from __future__ import annotations

from typing import Any

from streamtrain.columns.record_encoding import RowRecords
from streamtrain.columns.rejected import Rejected, RejectedRows, Rejecting
from streamtrain.columns.row_cache import RowCache
from streamtrain.columns.row_plan import LeftOut, cell_path
from streamtrain.errors import UserMistake
from streamtrain.files.file_records import FileRecords
from streamtrain.fitting.parallel_wrapper import given_as
from streamtrain.job import Job


def cache_rows(job: Job, source: Any, what: str, rejecting: Rejecting | None = None) -> RowCache:
    """Reads all rows of a source, or of files by their paths, as a job's columns have them.

    Raises UserMistake, which begins with `what`, where there is none: an iterator may be used up; and for a row that
    cannot be used, or with `rejecting` where it counts too many of them.
    """
    plan, given = job.plan(), given_as(source)
    reading = None if rejecting is None else rejecting.again()
    records: FileRecords | RowRecords
    if "files" in given:
        paths = [str(path) for path in given["files"]]
        records = FileRecords(job, paths, format=plan.bare, rejecting=reading)
    else:
        records = plan.records(given["rows"], reading)
    if rejecting is None or reading is None:
        return RowCache.of(plan, records, what, records.where)
    refused = RejectedRows()

    def leave_out(each: LeftOut) -> None:
        for row in range(each.row_from, each.row_to):
            place = records.where(each.record, row)
            refused.add(records.number(each.record, row), Rejected(place, f"{cell_path(each.path)}: {each.reason}"))

    rows = RowCache.of(plan, records, what, records.where, leave_out=leave_out)
    rejecting.take_all(reading.found.merged(refused), reading.rows)
    if not rows.slots:
        raise UserMistake(f"{what}: expected at least one row, got none")
    return rows
