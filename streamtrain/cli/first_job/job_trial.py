"""Tries a job on the records that it was made of, before it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from streamtrain.analysis.summary import Summary, is_at
from streamtrain.cli.first_job.inputs import Record
from streamtrain.columns.rejected import MAX_REJECTED, Rejected
from streamtrain.columns.row_plan import RowPlan
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.log import get_logger
from streamtrain.schemas import bare_format, job_format

log = get_logger(__name__)
MOST_BROKEN = 0.1  # of the sample's rows


def dead_rows(job: Job, records: Iterable[Record], rejected: Iterable[Rejected] = ()) -> dict[str, tuple[int, str]]:
    """Returns for each column how many rows it makes unusable, and why the first is; under "" those of no column.

    rejected: the rows without a record, once all records are read.
    """
    found: dict[str, tuple[int, str]] = {}

    def add(path: str, reason: str, rows: int) -> None:
        name = next((name for name, _ in job.schema.columns if is_at(path, job.schema, name)), "")
        count, why = found.get(name, (0, reason))
        found[name] = count + rows, why

    plan = RowPlan(job.schema, job_format(job), bare_format(job))
    for batch in plan.batches(records, bare=not job.registry, copy=False):
        for each in batch.left_out:
            add(each.path, each.reason, each.row_to - each.row_from)
    for row in rejected:
        add(row.path, row.reason.removeprefix(f"{row.path}: "), 1)
    return found


def distinct_values(job: Job, records: Iterable[Record], show: Callable[[int], None]) -> dict[str, int]:
    """Returns how many values each column has in all records, by an estimate where they are many."""
    summary = Summary(job)
    for rows in summary.add(records, bare=not job.registry):
        show(rows)
    return {name: column.distinct.count for name, column in summary.columns.items()}


def without(dead: Mapping[str, tuple[int, str]], source: str, rows: int, labels: Sequence[str]) -> dict[str, str]:
    """Returns the columns to leave out so that nearly all rows of the sample can be used, and why.

    Raises UserMistake where a label is the reason.
    """
    found = {
        name: f"{count} of the sample's rows cannot be used: {why}"
        for name, (count, why) in dead.items() if name and count > MAX_REJECTED * rows
    }  # fmt: skip
    for name in labels:
        if name in found:
            raise UserMistake(f"{source}: label {name}: {found[name]}")
    return found


def report_broken(dead: Mapping[str, tuple[int, str]], source: str, rows: int) -> None:
    """Warns of rows that cannot be used. Raises UserMistake where no job can use more than MOST_BROKEN of them."""
    for name, (count, why) in dead.items():
        by = f"for their {name}" if name else "by any job"
        text = f"{source}: {count} of the sample's {rows} rows cannot be used {by}: {why}"
        if not name and count > MOST_BROKEN * rows:
            raise UserMistake(text)
        log.warning(f"{text}; they will be dead letters")
