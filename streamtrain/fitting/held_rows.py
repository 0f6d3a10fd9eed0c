"""A program's rows, or those of files, that are gone over again and again."""

from __future__ import annotations

from typing import Any

from streamtrain.columns.held_rows import HeldRows
from streamtrain.files.records import FileRecords
from streamtrain.fitting.parallel_wrapper import given_as
from streamtrain.job import Job


def hold(job: Job, source: Any, what: str) -> HeldRows:
    """All rows of a source, or the paths of files, as a job's columns have them, in slots of so many. UserMistake,
    which begins with `what`, for a row that cannot be used, and where there is none: an iterator may be used up."""
    plan = job.plan()
    given = given_as(source)
    if "files" not in given:
        return HeldRows.of(plan, plan.encoded(given["rows"]), what)
    paths = [str(path) for path in given["files"]]
    records = FileRecords(job, paths, format=plan.bare)
    return HeldRows.of(plan, records, what, records.where)
