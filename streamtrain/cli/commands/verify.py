"""Check a job's guarantees on its topics."""

from __future__ import annotations

import typer

from streamtrain import verify as verification
from streamtrain.cli.report import show_report
from streamtrain.cli.session import JobFile, Session, command

ORDER = 120
app = typer.Typer(add_completion=False)


@app.command()
@command
def verify(session: Session, job: JobFile) -> None:
    """Check a job's guarantees on its topics, while it runs or after; exit code 1 where one does not hold."""
    show_report(session.out, verification.verify(session.connected_job(job)))
