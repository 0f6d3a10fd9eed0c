"""Train on the records as they arrive and publish snapshots."""

from __future__ import annotations

import csv
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Annotated

import typer

from streamtrain.cli import exposed_metrics
from streamtrain.cli.session import Files, JobFile, Session, command
from streamtrain.cli.snapshot_named import option, version_of
from streamtrain.cli.train_view import TrainView
from streamtrain.errors import UserMistake
from streamtrain.files.found import found_files
from streamtrain.job import Job
from streamtrain.log import get_logger
from streamtrain.run.fork_server import ForkServer
from streamtrain.run.host import Event, HostOptions
from streamtrain.run.train import Interrupts, TrainOptions
from streamtrain.run.train import train as run_trainer
from streamtrain.schemas import with_schema
from streamtrain.telemetry.tracing import find_exporter

ORDER = 70
log = get_logger(__name__)
app = typer.Typer(add_completion=False)


@app.command()
@command
def train(
    session: Session,
    job: JobFile,
    workers: Annotated[int | None, typer.Option(help="Worker processes; train.workers.", show_default=False)] = None,
    max_rows: Annotated[int | None, typer.Option(min=1, help="Stop after so many rows.", show_default=False)] = None,
    files: Files = None,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop at the current end of the records.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="New parameters, back to records.start; what was learned is lost.")
    ] = False,
    restore: Annotated[
        str | None, option("--restore", help="Snapshot N's, or the best one's, parameters at the newest positions.")
    ] = None,
    accept_gap: Annotated[
        bool, typer.Option("--accept-gap", help="Go on over removed records; the manifest records the gap.")
    ] = False,
    add_classes: Annotated[
        str, typer.Option("--add-classes", metavar="A,B", help="Refuse other new classes of the job file than these.")
    ] = "",
    host_id: Annotated[
        str, typer.Option("--host-id", metavar="NAME", help="This host's name among many; the machine's name.")
    ] = "",
    metrics_port: exposed_metrics.MetricsPort = None,
    metrics_host: exposed_metrics.MetricsHost = "127.0.0.1",
) -> None:
    """Train on the records as they arrive and publish snapshots; goes on where the newest snapshot ends. With
    --files on the rows of these files, in their order and each once, to their end.

    Ctrl-C or SIGTERM finishes the open round and publishes it; a second Ctrl-C stops at once.
    """
    if max_rows is not None and until_end:
        raise UserMistake("--max-rows and --until-end: expected one of them, got both")
    if fresh and restore is not None:
        raise UserMistake("--fresh and --restore: expected one of them, got both")
    if fresh and add_classes:
        raise UserMistake("--fresh and --add-classes: expected one of them, got both")
    flags = {} if workers is None else {"--workers": f"train.workers={workers}"}
    loaded = _without_module(session, job, flags)  # what loading builds is shared by the copy
    # before anything has a thread, which a module of PyTorch may bring
    fork_server = ForkServer.start(without="ingest" if files else "file_ingest")
    found = with_schema(session.connected(loaded or session.job(job, flags)))
    options = TrainOptions(
        max_rows=max_rows,
        until_end=until_end,
        fresh=fresh,
        restore=version_of(found, restore),
        accept_gap=accept_gap,
        add_classes=_classes(found, add_classes),
        files=found_files(files or ()),
        traces=find_exporter(os.environ),
        host_id=host_id or socket.gethostname(),
        host=_host(session, fork_server),
    )
    served = None if metrics_port is None else exposed_metrics.of_trainer(metrics_host, metrics_port, found)
    raise typer.Exit(_train_with_progress(session, found, options, served))


def _without_module(session: Session, job: JobFile, flags: Mapping[str, str]) -> Job | None:
    """The job; None where it has mistakes or names a module of PyTorch, which is not imported."""
    try:
        return session.job(job, flags, imports=False)
    except UserMistake:
        return None


def _classes(job: Job, given: str) -> list[str]:
    """The names of classes between commas; UserMistake where the job file has no class of that name."""
    names = next(csv.reader([given], skipinitialspace=True), [])
    known = [each for name, column in job.schema.labels for each in job.schema.labelled.classes(name, column)]
    if unknown := [name for name in names if name not in known]:
        raise UserMistake(
            f"--add-classes: expected classes of the job file, {', '.join(known)}, got {', '.join(unknown)}; "
            "add them at the end of the label's classes first"
        )
    return names


def _host(session: Session, fork_server: ForkServer | None) -> HostOptions:
    return HostOptions(
        logging=session.logging,
        failpoints=os.environ.get("STREAMTRAIN_FAILPOINTS", ""),
        workers={"isa": os.environ.get("STREAMTRAIN_ISA", "auto")},
        fork_server=fork_server,
    )


def _train_with_progress(
    session: Session, job: Job, options: TrainOptions, served: exposed_metrics.Served | None
) -> int:
    """Trains with the progress on the terminal and, where asked for, metrics that are served; gives the exit code."""
    stop = Interrupts()
    stop.install()
    with ExitStack() as opened:
        listeners: list[Callable[[Event], None]] = []
        if served is not None:  # before the view: what is told to have started is ready
            listeners.append(opened.enter_context(served))
        view = TrainView(session.out, job.name, log.info if session.logging["format"] == "json" else None)
        listeners.append(opened.enter_context(view))

        def on_event(event: Event) -> None:
            for listener in listeners:
                listener(event)

        code = run_trainer(job, options, on_event, stop)
    return code
