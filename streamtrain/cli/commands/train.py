"""Train on the records as they arrive and publish snapshots."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from streamtrain.cli.session import JobFile, Session, command
from streamtrain.cli.train_view import TrainView
from streamtrain.errors import UserMistake
from streamtrain.processes import supervisor
from streamtrain.processes.supervisor import Stop, TrainOptions

ORDER = 70
app = typer.Typer(add_completion=False)


@app.command()
@command
def train(
    session: Session,
    job: JobFile,
    workers: Annotated[int | None, typer.Option(help="Worker processes; train.workers.", show_default=False)] = None,
    max_rows: Annotated[int | None, typer.Option(min=1, help="Stop after so many rows.", show_default=False)] = None,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop where the records end now.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="New parameters, back to records.start; versions go on.")
    ] = False,
    restore: Annotated[
        int | None,
        typer.Option(metavar="N", help="Snapshot N's parameters at the newest positions.", show_default=False),
    ] = None,
    accept_gap: Annotated[
        bool, typer.Option("--accept-gap", help="Go on where records are gone; recorded in the manifest.")
    ] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Port of the Prometheus metrics and readiness.", show_default=False),
    ] = None,
) -> None:
    """Train on the records as they arrive and publish snapshots; goes on where the newest snapshot ends.

    Ctrl-C or SIGTERM finishes the open round and publishes it; a second Ctrl-C stops at once.
    """
    if max_rows is not None and until_end:
        raise UserMistake("--max-rows and --until-end: expected one of them, got both")
    if fresh and restore is not None:
        raise UserMistake("--fresh and --restore: expected one of them, got both")
    found = session.connected_job(job, train__workers=workers)
    options = TrainOptions(
        max_rows=max_rows,
        until_end=until_end,
        fresh=fresh,
        restore=restore,
        accept_gap=accept_gap,
        isa=os.environ.get("STREAMTRAIN_ISA", "auto"),
        failpoints=os.environ.get("STREAMTRAIN_FAILPOINTS", ""),
        logging=session.logging,
    )
    stop = Stop()
    stop.install()
    with TrainView(session.out, found.name) as view:
        code = supervisor.train(found, options, view, stop)
    raise typer.Exit(code)
