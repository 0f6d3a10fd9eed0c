"""Predict over HTTP with the newest snapshots of one or more jobs."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from streamtrain import exits
from streamtrain.cli.session import Session, command
from streamtrain.cli.snapshot_named import option, parse_version, version_of
from streamtrain.cli.stopping import StopSignals
from streamtrain.cli.token import HOST, TokenFile, token_for
from streamtrain.compute.torch import in_process_of_its_own
from streamtrain.errors import UserMistake
from streamtrain.log import get_logger
from streamtrain.serving.config import MOST_BYTES, MOST_REQUESTS, Config, Limits, ServedJob
from streamtrain.serving.processes import Processes
from streamtrain.serving.server import bound
from streamtrain.serving.server import serve as serve_here
from streamtrain.telemetry.serving import ServingTable
from streamtrain.telemetry.tracing import find_exporter

ORDER = 85
PACKAGES = ("fastapi", "uvicorn", "httptools")
log = get_logger(__name__)
app = typer.Typer(add_completion=False)


@app.command()
@command
def serve(
    session: Session,
    jobs: Annotated[list[Path], typer.Argument(metavar="JOB.toml", help="The job files.", show_default=False)],
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0: one that is free.")] = 8080,
    host: Annotated[str, typer.Option(help=HOST)] = "127.0.0.1",
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes, each with its own models.")] = 1,
    token_file: TokenFile = None,
    most_bytes: Annotated[
        int, typer.Option(min=1_000, max=1 << 30, help="Largest request body in bytes; larger ones get 413.")
    ] = MOST_BYTES,
    most_requests: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Most requests at once in a process; more get 429.")
    ] = MOST_REQUESTS,
    snapshot: Annotated[
        str | None,
        option("--snapshot", "--version", help="Stay with snapshot N, or the best one; default: the newest."),
    ] = None,
) -> None:
    """Predict over HTTP with the newest snapshots of one or more jobs, or with given ones.

    Rows in JSON at /predict/JOB, tensors at /v2/models/JOB/infer (Open Inference Protocol). 503 until there is a
    trained snapshot. Ctrl-C or SIGTERM ends it when what came is answered; a second one stops at once.
    """
    _require()
    found = [session.connected_job(path) for path in jobs]
    names = [job.name for job in found]
    if len(set(names)) < len(names):
        raise UserMistake(f"serve: expected each job once, got {', '.join(names)}")
    for job in found:
        version_of(job, snapshot)  # the topic holds it
    token = token_for(host, token_file)
    with bound(host, port) as probe:  # taken by nobody
        port = probe.getsockname()[1]
        if workers == 1:
            listener = probe.dup()
    config = Config(
        tuple(ServedJob.of(job, parse_version(snapshot)) for job in found), host, port,
        Limits(most_bytes, most_requests), token.encode() or None,
        session.logging["format"], session.logging["level"] in ("debug", "info"), find_exporter(os.environ),
    )  # fmt: skip
    table = ServingTable(names, workers)
    command = _Command(session, config, table)
    if workers == 1:
        command.here(listener)
    else:
        command.in_processes()
    raise typer.Exit(exits.INTERRUPTED if command.interrupted else 0)


class _Command:
    """The running command: it reports, and knows when it ends."""

    def __init__(self, session: Session, config: Config, table: ServingTable) -> None:
        self._session, self._config, self._table = session, config, table
        self._server: Any = None
        self.interrupted = False  # by Ctrl-C

    def here(self, listener: Any) -> None:
        """One process: this one."""
        if any(job.module for job in self._config.jobs):
            in_process_of_its_own()
        before = {number: signal.signal(number, self._signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            serve_here(self._config, self._table, None, listener, self._listens)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def in_processes(self) -> None:
        """Several, whose port this one holds."""
        config = self._config
        with bound(config.host, config.port, shared=True), StopSignals() as stop:
            processes = Processes(config, self._table, self._session.logging)
            processes.start()
            try:
                said = False
                while not stop.is_set():
                    processes.look()
                    if not said and self._table.listening() == self._table.processes:
                        said = True
                        self._say()
                processes.drain()
            finally:
                processes.kill()
            self.interrupted = stop.interrupted

    def _listens(self, server: Any) -> None:
        self._server = server
        self._say()

    def _say(self) -> None:
        config = self._config
        version = config.jobs[0].version  # of all
        figures = {"url": config.url, "jobs": list(config.names), "workers": self._table.processes, "stays_at": version}
        stays = "" if version is None else f", which stays at snapshot {version}"
        text = f"serving {', '.join(config.names)} at {config.url}{stays}"
        self._session.out.line({"event": "serving", "port": config.port, **figures}, text)

    def _signal(self, number: int, frame: FrameType | None) -> None:
        self.interrupted |= number == signal.SIGINT
        if self._server is None:
            raise KeyboardInterrupt
        if self._server.should_exit:
            _at_once()
        self._server.should_exit = True


def _at_once() -> NoReturn:
    """An exception would be the event loop's, which may keep it."""
    sys.stdout.flush()
    os._exit(exits.INTERRUPTED)


def _require() -> None:
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise UserMistake(
            f"serve: expected the packages {', '.join(PACKAGES)}, found no {', '.join(missing)}; install the extra: "
            "pip install 'streamtrain[serve]'"
        )
