"""Tries a job on the records that it was made of, before it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from streamtrain.analysis.summary import Summary, is_at
from streamtrain.columns.row_plan import RowPlan
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.schemas import bare_format, job_format


def dead_rows(job: Job, records: Iterable[bytes]) -> dict[str, tuple[int, str]]:
    """Returns for each column how many rows it makes unusable, and why the first is; under "" those of no column."""
    found: dict[str, tuple[int, str]] = {}
    names = [name for name, _ in job.schema.columns]
    for batch in RowPlan(job.schema, job_format(job), bare_format(job)).batches(records, bare=True, copy=False):
        for each in batch.left_out:
            name = next((name for name in names if is_at(each.path, job.schema, name)), "")
            count, why = found.get(name, (0, each.reason))
            found[name] = count + each.row_to - each.row_from, why
    return found


def distinct_values(job: Job, records: Iterable[bytes], show: Callable[[int], None]) -> dict[str, int]:
    """Returns how many values each column has in all records, by an estimate where they are many."""
    summary = Summary(job)
    for rows in summary.add(records, bare=True):
        show(rows)
    return {name: column.distinct.count for name, column in summary.columns.items()}


def without(dead: dict[str, tuple[int, str]], source: str, labels: Sequence[str]) -> dict[str, str]:
    """Returns the columns to leave out so that every row of the sample can be used, and why.

    Raises UserMistake where a label is the reason, or no column is.
    """
    for name in ["", *labels]:
        if name in dead:
            count, why = dead[name]
            what = f"label {name}" if name else "records"
            raise UserMistake(f"{source}: {what}: {count} of the sample's rows cannot be used: {why}")
    return {name: f"{count} of the sample's rows cannot be used: {why}" for name, (count, why) in dead.items()}
