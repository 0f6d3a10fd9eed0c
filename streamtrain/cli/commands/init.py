"""Write a job file for a sample of your records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from streamtrain.cli.first_job.columns import decide
from streamtrain.cli.first_job.job_file import Columns, Machine, job_text
from streamtrain.cli.first_job.sample import Decision, Sample
from streamtrain.cli.first_job.sources import FileSource, Source, TopicSource
from streamtrain.cli.first_job.trial import dead_rows, distinct_values, report_broken, without
from streamtrain.cli.output import table
from streamtrain.cli.progress import Progress
from streamtrain.cli.session import Session, command
from streamtrain.compute import backends
from streamtrain.errors import UserMistake
from streamtrain.job import Job, JobMistakes

ORDER = 30
app = typer.Typer(add_completion=False)


@app.command()
@command
def init(
    session: Session,
    job: Annotated[Path, typer.Argument(metavar="JOB.toml", help="The job file to write.", show_default=False)],
    label: Annotated[
        list[str],
        typer.Option(metavar="COLUMN", help="The column to learn; again for another head.", show_default=False),
    ],
    sample: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FILE", help="A file: .csv, .jsonl, .parquet, .arrow and others.", show_default=False
        ),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(
            "--from-topic", metavar="TOPIC", help="A topic whose records are JSON or msgpack.", show_default=False
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a job file that is there.")] = False,
) -> None:
    """Write a job file for a sample of your records: columns, kinds and sizes as found in it, ready to be edited.

    Shows what each column is and why, and the choices to look at again. The job takes every row of the sample."""
    if job.exists() and not force:
        raise UserMistake(f"{job}: is there already; give another name, or --force to write over it")
    if (sample is None) == (topic is None):
        got = "none of them" if topic is None else "both"
        raise UserMistake(f"init: expected --from FILE or --from-topic TOPIC, got {got}")
    bootstrap = session.bootstrap or "localhost:9092"
    source = FileSource(sample) if sample is not None else TopicSource(str(topic), bootstrap, session.sets)
    found, parsed, text = _tried(session, source, label, job, bootstrap)
    try:
        job.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserMistake(f"{job}: cannot be written: {error.strerror}") from error
    _show(session, job, parsed, found, source)


def _tried(session: Session, source: Source, labels: list[str], path: Path, bootstrap: str) -> tuple[Columns, Job, str]:
    """The columns of a job that takes every row of the sample, the job, and its text."""
    machine, left_out = Machine(backends.devices()), dict[str, str]()
    sample = Sample.of(source.name, source.rows, labels, source.weight)
    while True:
        found = Columns(decide(sample, left_out), sample)
        text = job_text(
            path.stem, len(source.rows), found, bootstrap, machine, source.format, source.topic, source.partitions
        )
        job = _parsed(text, path, source.name)
        dead = dead_rows(job, source.records(job, len(source.rows)))
        if unusable := without(dead, source.name, sample.labels):
            left_out |= unusable
        elif source.is_whole or sample.counts:
            report_broken(dead, source.name, len(source.rows))
            return found, job, text
        else:
            with Progress(session.out, "rows counted", None) as bar:
                counts = distinct_values(job, source.records(job, None), bar.show)
            sample = replace(sample, counts=counts)


def _parsed(text: str, path: Path, source: str) -> Job:
    try:
        return Job.parse(text, name=path.name)
    except JobMistakes as mistakes:  # it has not been written: what is wrong is the sample
        found = "; ".join(str(mistake).removeprefix(f"{mistake.where}: ") for mistake in mistakes.mistakes)
        raise UserMistake(f"{source}: no job can be made of it: {found}") from None


def _show(session: Session, path: Path, job: Job, found: Columns, source: Source) -> None:
    """A line for each column, and the choices to look at again."""
    learned, rows = ", ".join(found.losses), len(source.rows)
    used = [each for each in found.decisions if each.settings]
    columns = {each.name: {"kind": each.shown, "reason": each.reason, "other": each.other} for each in found.decisions}
    document = {"job": str(path), "name": job.name, "rows_read": rows, "label": learned, "columns": columns}
    session.out.document(
        document,
        table(["column", "kind", "reason"], map(_row, found.decisions)),
        *(f"check {each.name}: {each.reason or each.shown}; or {each.other}" for each in found.decisions if each.other),
        f"wrote {path}: {len(used)} columns, learning {learned}, from {rows} rows of {source.name}",
        f"next: streamtrain check {path}",
    )


def _row(each: Decision) -> tuple[str, str, str]:
    return each.name or '""', each.shown, each.reason
