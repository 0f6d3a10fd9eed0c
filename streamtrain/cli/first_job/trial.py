"""Tries a job on the records that it was made of, before it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from streamtrain.analysis.summary import Summary, is_at
from streamtrain.cli.first_job.sources import Record
from streamtrain.columns.row_plan import RowPlan
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.log import get_logger
from streamtrain.schemas import bare_format, job_format

log = get_logger(__name__)
MOST_BROKEN = 0.1  # of the sample's rows


def dead_rows(job: Job, records: Iterable[Record]) -> dict[str, tuple[int, str]]:
    """Returns for each column how many rows it makes unusable, and why the first is; under "" those of no column."""
    found: dict[str, tuple[int, str]] = {}
    names = [name for name, _ in job.schema.columns]
    plan = RowPlan(job.schema, job_format(job), bare_format(job))
    for batch in plan.batches(records, bare=not job.registry, copy=False):
        for each in batch.left_out:
            name = next((name for name in names if is_at(each.path, job.schema, name)), "")
            count, why = found.get(name, (0, each.reason))
            found[name] = count + each.row_to - each.row_from, why
    return found


def distinct_values(job: Job, records: Iterable[Record], show: Callable[[int], None]) -> dict[str, int]:
    """Returns how many values each column has in all records, by an estimate where they are many."""
    summary = Summary(job)
    for rows in summary.add(records, bare=not job.registry):
        show(rows)
    return {name: column.distinct.count for name, column in summary.columns.items()}


def without(dead: Mapping[str, tuple[int, str]], source: str, labels: Sequence[str]) -> dict[str, str]:
    """Returns the columns to leave out so that the rows of the sample can be used, and why.

    Raises UserMistake where a label is the reason.
    """
    found = {name: f"{count} of the sample's rows cannot be used: {why}" for name, (count, why) in dead.items() if name}
    for name in labels:
        if name in found:
            raise UserMistake(f"{source}: label {name}: {found[name]}")
    return found


def report_broken(dead: Mapping[str, tuple[int, str]], source: str, rows: int) -> None:
    """Warns of records that no job can use. Raises UserMistake where they are more than MOST_BROKEN of the rows."""
    if "" not in dead:
        return
    count, why = dead[""]
    text = f"{source}: {count} of the sample's {rows} rows cannot be used by any job: {why}"
    if count > MOST_BROKEN * rows:
        raise UserMistake(text)
    log.warning(f"{text}; they will be dead letters")
