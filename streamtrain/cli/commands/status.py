"""Show how a job is doing, from its topics alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.live import Live

from streamtrain.cli.session import JobFile, Session, command
from streamtrain.cli.standing_view import standing_view
from streamtrain.clients.standing import JobStanding
from streamtrain.errors import StreamtrainError

ORDER = 110
WATCH_S = 1.0
app = typer.Typer(add_completion=False)


@app.command()
@command
def status(
    session: Session, job: JobFile, watch: Annotated[bool, typer.Option("--watch", help="Go on showing it.")] = False
) -> None:
    """Show how a job is doing: newest snapshot and its age, rows a second, lag, quality and its trend, dead letters."""
    with JobStanding(session.job(job)) as standing:
        document = standing.look()
        if not watch:
            session.out.document(document, standing_view(document))
        elif session.as_json:
            for now in _watched(standing, document):
                session.out.line(now)
        elif not session.out.console.is_terminal:
            for now in _watched(standing, document):
                session.out.say(standing_view(now), "")
        else:
            with Live(standing_view(document), console=session.out.console, auto_refresh=False) as live:
                for now in _watched(standing, document):
                    live.update(standing_view(now), refresh=True)


def _watched(standing: JobStanding, document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The status again and again; while Kafka is away the last one, with the error."""
    while True:
        yield document
        time.sleep(WATCH_S)
        try:
            document = standing.look()
        except StreamtrainError as error:
            document = {**document, "error": str(error)}
