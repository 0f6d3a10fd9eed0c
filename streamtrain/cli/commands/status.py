"""Show how a job is doing, from its topics alone."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.live import Live

from streamtrain.cli.session import JobFile, Session, command
from streamtrain.cli.standing_view import standing_view
from streamtrain.clients.standing import JobStanding

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
    with JobStanding(session.job(job)) as standing:
        if not watch:
            document = standing.look()
            session.out.document(document, standing_view(document))
        elif session.as_json:
            for document in standing.watch(WATCH_S):
                session.out.line(document)
        elif not session.out.console.is_terminal:
            for document in standing.watch(WATCH_S):
                session.out.say(standing_view(document), "")
        else:
            with Live(console=session.out.console, auto_refresh=False) as live:
                for document in standing.watch(WATCH_S):
                    live.update(standing_view(document), refresh=True)
