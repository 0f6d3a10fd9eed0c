"""Show how a job is doing, from its topics alone."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.live import Live

from streamtrain.cli.console import console
from streamtrain.cli.session import JobFile, Session, command
from streamtrain.cli.status_view import status_view
from streamtrain.clients.status import JobStatus

ORDER = 110
WATCH_S = 1.0
app = typer.Typer(add_completion=False)


@app.command()
@command
def status(
    session: Session,
    job: JobFile,
    watch: Annotated[bool, typer.Option("--watch", help="Keep showing it until Ctrl-C.")] = False,
) -> None:
    """Show how a job is doing: newest snapshot and its age, rows a second, lag, quality and its trend, dead letters."""
    with JobStatus(session.job(job)) as job_status:
        if not watch:
            document = job_status.look()
            session.out.document(document, status_view(document))
        elif session.as_json:
            for document in job_status.watch(WATCH_S):
                session.out.line(document)
        elif not console().is_terminal:
            for document in job_status.watch(WATCH_S):
                session.out.say(status_view(document), "")
        else:
            with Live(console=console(), auto_refresh=False) as live:
                for document in job_status.watch(WATCH_S):
                    live.update(status_view(document), refresh=True)
