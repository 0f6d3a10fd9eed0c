"""Write a job file for a sample of your records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from streamtrain.cli.console import table
from streamtrain.cli.first_job.by_schema import decide_by_schema
from streamtrain.cli.first_job.columns import decide
from streamtrain.cli.first_job.inputs import FileSource, Source, SubjectSource, TopicSource
from streamtrain.cli.first_job.job_file import Columns, Machine, job_text
from streamtrain.cli.first_job.job_trial import dead_rows, distinct_values, report_broken, without
from streamtrain.cli.first_job.sample import Decision, Sample
from streamtrain.cli.progress import Progress
from streamtrain.cli.session import Session, command
from streamtrain.columns.rejected import Rejecting
from streamtrain.compute import backends
from streamtrain.errors import UserMistake
from streamtrain.job import Job, JobMistakes
from streamtrain.job.round_sizes import largest_rates

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
    subject: Annotated[
        str | None,
        typer.Option(
            "--from-subject", metavar="SUBJECT", show_default=False,
            help="A subject of the schema registry at --set registry.url=URL: its topic's rows, else its schema alone.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing job file.")] = False,
) -> None:
    """Write a job file for a sample of your records: columns, kinds and sizes as found in it, ready to be edited.

    Shows what each column is and why, and the choices to look at again. The job takes every row of the sample."""
    if job.exists() and not force:
        raise UserMistake(f"{job}: is there already; give another name, or --force to write over it")
    bootstrap = session.bootstrap or "localhost:9092"
    source = _source(session, bootstrap, sample, topic, subject)
    found, parsed, text = _tried(session, source, label, job, bootstrap)
    try:
        job.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserMistake(f"{job}: cannot be written: {error.strerror}") from error
    _show(session, job, parsed, found, source)


def _source(session: Session, bootstrap: str, sample: str | None, topic: str | None, subject: str | None) -> Source:
    given = sum(each is not None for each in (sample, topic, subject))
    if given != 1:
        got = f"{given} of them" if given else "none of them"
        expected = "one of --from FILE, --from-topic TOPIC and --from-subject SUBJECT"
        raise UserMistake(f"init: expected {expected}, got {got}")
    if sample is not None:
        return FileSource(sample)
    if topic is not None:
        return TopicSource(topic, bootstrap, session.sets)
    return SubjectSource(str(subject), bootstrap, session.sets)


def _tried(session: Session, source: Source, labels: list[str], path: Path, bootstrap: str) -> tuple[Columns, Job, str]:
    """The columns of a job that takes every row of the sample, the job, and its text."""
    if not source.rows and source.fields:
        return _guessed(source, labels, path, bootstrap)
    left_out = dict[str, str]()
    sample = Sample.of(source.name, source.rows, labels, source.weight)
    while True:
        found = Columns(decide(sample, left_out), sample)
        text = _text(source, path, found, bootstrap)
        job = _parsed(text, path, source)
        rejecting = Rejecting(1.0, reports=False)
        dead = dead_rows(job, source.records(job, len(source.rows), rejecting), rejecting.found)
        if unusable := without(dead, source.name, len(source.rows), sample.labels):
            left_out |= unusable
        elif source.is_whole or sample.counts:
            report_broken(dead, source.name, len(source.rows))
            return found, job, text
        else:
            with Progress(session.out, "rows counted", None) as bar:
                counts = distinct_values(job, source.records(job, None, rejecting), bar.show)
            sample = replace(sample, counts=counts)


def _guessed(source: Source, labels: list[str], path: Path, bootstrap: str) -> tuple[Columns, Job, str]:
    """The same without a sample: a job whose columns the schema can give."""
    found = Columns(*decide_by_schema(source.name, source.fields, labels))
    text = _text(source, path, found, bootstrap)
    return found, _parsed(text, path, source).with_schema(source.schema), text


def _text(source: Source, path: Path, found: Columns, bootstrap: str) -> str:
    return job_text(
        path.stem, len(source.rows), found, bootstrap, Machine(backends.devices()), source.format, source.topic,
        source.partitions, source.registry,
    )  # fmt: skip


def _parsed(text: str, path: Path, source: Source) -> Job:
    try:
        return replace(Job.parse(text, name=path.name), registry=source.registry)
    except JobMistakes as mistakes:  # it has not been written: what is wrong is the sample
        found = "; ".join(str(mistake).removeprefix(f"{mistake.where}: ") for mistake in mistakes.mistakes)
        raise UserMistake(f"{source.name}: no job can be made of it: {found}") from None


def _show(session: Session, path: Path, job: Job, found: Columns, source: Source) -> None:
    """A line for each column, and the choices to look at again."""
    learned, rows = ", ".join(found.losses), len(source.rows)
    used = [each for each in found.decisions if each.settings]
    columns = {each.name: {"kind": each.kind, "reason": each.reason, "other": each.other} for each in found.decisions}
    origin = f"from {rows} rows of {source.name}" if rows else f"guessed by the schema of {source.name} alone, no rows"
    document = {"job": str(path), "name": job.name, "rows_read": rows, "label": learned, "columns": columns}
    first, _ = largest_rates(job.train, job.rounds, job.state_bytes)
    limit = f"averaging allows at most {first:,.0f} rows/s with the first batches"
    size = f"a model of {job.state_bytes / 1e6:,.1f} MB; {limit}"
    session.out.document(
        document,
        table(["column", "kind", "reason"], map(_row, found.decisions)),
        *(f"check {each.name}: {each.reason or each.kind}; or {each.other}" for each in found.decisions if each.other),
        size,
        f"wrote {path}: {len(used)} columns, learning {learned}, {origin}",
        f"next: streamtrain check {path}",
    )


def _row(each: Decision) -> tuple[str, str, str]:
    return each.name or '""', each.kind, each.reason
