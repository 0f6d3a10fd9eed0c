"""Write a job file for a sample of your records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamtrain.cli.infer import Machine, job_text
from streamtrain.cli.session import Session, command
from streamtrain.compute import backends
from streamtrain.errors import UserMistake
from streamtrain.files.format_lines import is_records
from streamtrain.files.forms import suffixes
from streamtrain.files.reading import read_rows
from streamtrain.job import Job, JobMistakes

ORDER = 30
SAMPLE_ROWS = 20_000
app = typer.Typer(add_completion=False)


@app.command()
@command
def init(
    session: Session,
    job: Annotated[Path, typer.Argument(metavar="JOB.toml", help="The job file to write.", show_default=False)],
    sample: Annotated[
        str,
        typer.Option(
            "--from", metavar="SAMPLE", help="A file: .csv, .jsonl, .parquet, .arrow and others.", show_default=False
        ),
    ],
    label: Annotated[
        list[str],
        typer.Option(metavar="COLUMN", help="The column to learn; again for another head.", show_default=False),
    ],
    force: Annotated[bool, typer.Option("--force", help="Write over a job file that is there.")] = False,
) -> None:
    """Write a job file for a sample of your records: columns, kinds and sizes as found in it, ready to be edited."""
    if job.exists() and not force:
        raise UserMistake(f"{job}: is there already; give another name, or --force to write over it")
    rows = [row for row, _ in zip(read_rows(sample), range(SAMPLE_ROWS), strict=False)]
    machine = Machine(backends.devices())
    suffix = suffixes("rows").get(Path(sample).suffix.lower(), "")
    records = suffix if is_records(suffix) else "json"
    text, told = job_text(job.stem, sample, rows, label, session.bootstrap or "localhost:9092", machine, records)
    try:
        made = Job.parse(text, name=job.name)
    except JobMistakes as mistakes:  # it has not been written: what is wrong is the sample
        found = "; ".join(str(mistake).removeprefix(f"{mistake.where}: ") for mistake in mistakes.mistakes)
        raise UserMistake(f"{sample}: no job can be made of it: {found}") from None
    try:
        job.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserMistake(f"{job}: cannot be written: {error.strerror}") from error
    columns = {
        name: column.role if column.role != "feature" else column.kind or "number"
        for name, column in made.schema.columns
    }
    learned = ", ".join(label)
    said = f"wrote {job}: {len(columns)} columns, learning {learned}, from {len(rows)} rows of {sample}"
    about = {"job": str(job), "name": made.name, "rows_read": len(rows), "label": learned}
    session.out.document(
        {**about, "columns": columns, "notes": told},
        "\n".join([said, *told]),
        f"next: streamtrain check {job}",
    )
