"""Write what the model would be given of files of rows: by the job's decoder and transforms, as columns of a file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, NamedTuple

import typer

from streamtrain import exits
from streamtrain.cli.choice import one_of
from streamtrain.cli.progress import Progress
from streamtrain.cli.session import JobFile, MaxRejected, Session, command
from streamtrain.cli.stopping import StopSignals
from streamtrain.columns.rejected import MAX_REJECTED, RejectedRows, Rejecting
from streamtrain.columns.row_plan import Rows, cell_path
from streamtrain.columns.served import Served
from streamtrain.files.file_records import FileRecords
from streamtrain.files.forms import form_names
from streamtrain.files.seen_rows import SeenRows
from streamtrain.files.writing import Stopped, write_rows
from streamtrain.job import Job
from streamtrain.kafka.snapshot_reader import SnapshotTopic

ORDER = 65
MAX_REASONS = 5  # of the rows that cannot be used
app = typer.Typer(add_completion=False)


@app.command()
@command
def vectorize(
    session: Session,
    job: JobFile,
    input: Annotated[list[str], typer.Option(metavar="FILE", help="Rows, as produce takes them; may be repeated.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="A .parquet, .arrow, .npy or .packed file.")
    ],
    snapshot: Annotated[
        int | None,
        typer.Option(
            metavar="VERSION", help="Standardise and transform by this snapshot's statistics.", show_default=False
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many rows.", show_default=False)] = None,
    form: Annotated[
        str | None,
        typer.Option("--form", **one_of(form_names, "What the input is, where its name does not say it")),
    ] = None,
    max_rejected: MaxRejected = MAX_REJECTED,
) -> None:
    """Write what the model would be given of rows: numbers, buckets of categories, what transforms make. Rows that
    cannot be used are left out and reported. Ctrl-C leaves no file."""
    rejecting = Rejecting(max_rejected, "--max-rejected")
    _to_file(session, session.job(job), Files(input, output, limit, form), snapshot, rejecting)


class Files(NamedTuple):
    """The input files and their form, how many rows to read, and the output."""

    input: list[str]
    output: str
    limit: int | None
    form: str | None


def _to_file(
    session: Session, found: Job, files: Files, snapshot: int | None, rejecting: Rejecting
) -> None:
    output = files.output
    plan = found.plan()
    seen = None if snapshot is None else SeenRows(_served(found, snapshot), found.schema, plan)
    parts = plan.parts if seen is None else seen.parts
    started_s = time.monotonic()
    with StopSignals() as stop, Progress(session.out, f"rows to {output}", files.limit) as bar:
        records = FileRecords(found, files.input, files.form, files.limit, plan.bare, rejecting)
        omissions = Omissions(records)

        def batches() -> Iterator[Rows]:
            for batch in plan.batches(stop.each(records), bare=True, copy=False):
                if stop.is_set():
                    raise Stopped
                omissions.add(batch)
                bar.show(records.rows)
                yield batch if seen is None else seen(batch)

        try:
            written = write_rows(output, parts, batches())
        except Stopped:
            raise typer.Exit(exits.INTERRUPTED) from None
    omissions.add_rejected(rejecting.found)
    document = {"output": output, "rows_read": records.rows, "rows_written": written, "filtered": omissions.filtered,
                "left_out": omissions.count, "first_left_out": omissions.first, "snapshot": snapshot,
                "columns": [part.name for part in parts],
                "seconds": round(time.monotonic() - started_s, 3)}  # fmt: skip
    session.out.document(document, f"{written:,} rows of {len(parts)} columns to {output}",
                         *_left_lines(omissions.count, omissions.first, omissions.filtered))  # fmt: skip


def _left_lines(count: int, first: list[str], filtered: int) -> list[str]:
    left = [f"rows that cannot be used, left out: {count:,}", *(f"  {line}" for line in first)]
    return (left if count else []) + ([f"rows filtered, as the job says: {filtered:,}"] if filtered else [])


class Omissions:
    """The count of the rows that are not in the output, and the reasons of the first ones."""

    def __init__(self, records: FileRecords) -> None:
        self._records = records
        self.count = self.filtered = 0
        self.first: list[str] = []

    def add(self, batch: Rows) -> None:
        self.filtered += batch.filtered
        for each in batch.left_out:
            self.count += each.row_to - each.row_from
            if len(self.first) < MAX_REASONS:
                where = f"{self._records.where(each.record, each.row_from)} at {cell_path(each.path)}"
                self.first.append(f"{where}: {each.reason}")


    def add_rejected(self, rejected: RejectedRows) -> None:
        self.count += rejected.rows
        self.first = [*map(str, rejected[:MAX_REASONS]), *self.first][:MAX_REASONS]


def _served(job: Job, version: int) -> Served:
    with SnapshotTopic(job.name, job.kafka.bootstrap, job.kafka_consumer()) as topic:
        stored = topic.version(version, trainer=False)
    return Served.of(stored.manifest, stored.digest, stored.model)
