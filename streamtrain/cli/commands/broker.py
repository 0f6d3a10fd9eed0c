"""Start, stop or show the Kafka that comes with streamtrain."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from streamtrain.broker import broker_status, start_broker, stop_broker
from streamtrain.cli.session import Session, command

ORDER = 20
PORT = 9092  # Kafka's usual one
app = typer.Typer(no_args_is_help=True, add_completion=False)

Data = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", help="Folder of Kafka's data; default: streamtrain/kafka in the user's data folder."
    ),
]
Port = Annotated[
    int | None, typer.Option(min=1, max=65_535, help="The port it was started on; refused where it runs on another.")
]


def data_folder(given: Path | None) -> Path:
    """The folder given, or the user's own by the XDG rule."""
    if given is not None:
        return given
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "streamtrain" / "kafka"


@app.command("start")
@command
def start(
    session: Session,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65_535, help=f"Port on 127.0.0.1; default: {PORT}, or the folder's own."),
    ] = None,
    data: Data = None,
) -> None:
    """Start Kafka and leave it running; finds the one that already runs on the folder."""
    folder = data_folder(data)
    home = os.environ.get("KAFKA_HOME")
    new = not (folder / "broker.json").exists()
    broker = start_broker(
        folder, PORT if port is None and new else port, detached=True, kafka_home=Path(home) if home else None
    )
    state = "already runs" if broker.found else "runs"
    document = {"bootstrap": broker.bootstrap, "data": str(broker.data), "pids": broker.pids, "found": broker.found}
    session.out.document(document, f"Kafka {state} at {broker.bootstrap}, data in {broker.data}")


@app.command("stop")
@command
def stop(session: Session, port: Port = None, data: Data = None) -> None:
    """Stop the Kafka that runs on the folder; its data stays."""
    folder = data_folder(data)
    stopped = stop_broker(folder, port)
    text = f"Kafka stopped; its data stays in {folder}" if stopped else f"no Kafka runs on {folder}"
    session.out.document({"stopped": stopped, "data": str(folder)}, text)


@app.command("status")
@command
def status(session: Session, port: Port = None, data: Data = None) -> None:
    """Say whether Kafka runs on the folder, and where. Exit code 1 where it does not."""
    found = broker_status(data_folder(data), port)
    document = {
        "running": found.running,
        "bootstrap": found.bootstrap,
        "data": str(found.data),
        "pids": list(found.pids),
    }
    text = f"Kafka runs at {found.bootstrap}" if found.running else "no Kafka runs"
    session.out.document(document, f"{text}, data in {found.data}")
    if not found.running:
        raise typer.Exit(1)
