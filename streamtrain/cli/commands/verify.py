"""Check a job's guarantees on its topics."""

from __future__ import annotations

from typing import Annotated

import typer

from streamtrain.checks.verify import verify as check_topics
from streamtrain.cli.report import show_report
from streamtrain.cli.session import Files, JobFile, Session, command
from streamtrain.files.found import found_files

ORDER = 120
Fast = Annotated[
    bool, typer.Option("--fast", help="Read records and requests again only where their log alone does not tell.")
]
app = typer.Typer(add_completion=False)


@app.command()
@command
def verify(session: Session, job: JobFile, files: Files = None, fast: Fast = False) -> None:
    """Check a job's guarantees on its topics, while it runs or after; exit code 1 where one does not hold."""
    show_report(session.out, check_topics(session.connected_job(job), fast, found_files(files or ())))
