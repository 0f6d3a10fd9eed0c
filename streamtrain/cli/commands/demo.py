"""See it work: Kafka, a year of flights streaming in, a model that learns them, live."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from streamtrain import _native, exits
from streamtrain.cli.demo_view import DemoView
from streamtrain.cli.session import Session, command
from streamtrain.demo import demo as the_demo
from streamtrain.log import configure_logging
from streamtrain.ui.app import nicegui

ORDER = 10
RATE = 5_600.0  # rows a second: the year in a minute
app = typer.Typer(add_completion=False)


@app.command()
@command
def demo(
    session: Session,
    rate: Annotated[
        float, typer.Option(min=0, help="Flights per second; the default is a year in a minute; 0: as fast as it goes.")
    ] = RATE,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many flights.", show_default=False)
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=_native.MAX_WORKERS, help="Worker processes.")] = 2,
    ui: Annotated[bool, typer.Option("--ui", help="A page beside it, until Ctrl-C; needs the extra `ui`.")] = False,
) -> None:
    """Learn from 336,776 flights as they stream in whether the next ones will be late; shows it live, checks it after.

    Starts a Kafka of its own in ./streamtrain-demo and ends it; leaves its data and the job file there. Exit code 1
    where a check does not hold. Ctrl-C stops it at any time.
    """
    if session.logging["level"] == "info":
        configure_logging("warning", session.logging["format"])  # the screen tells the rest
    if ui:
        nicegui()  # what is missing is said before anything is started
    home = os.environ.get("KAFKA_HOME")
    options = the_demo.Options(
        rows=rows,
        rate=rate,
        workers=workers,
        bootstrap=session.bootstrap,
        sets=tuple(session.sets),
        environment=os.environ,
        kafka_home=Path(home) if home else None,
        program=program(),
        ui=ui,
    )
    try:
        with DemoView(session.out) as view:
            summary = the_demo.run(options, view)
    except KeyboardInterrupt:
        if not session.as_json:
            print("stopped; everything it started has ended", file=sys.stderr)
        raise typer.Exit(exits.INTERRUPTED) from None
    raise typer.Exit(0 if summary.ok else 1)


def program() -> str:
    """Returns what to type for this very streamtrain: its name if the PATH finds it, else its path."""
    here = Path(sys.argv[0])
    found = shutil.which("streamtrain")
    if here.name != "streamtrain" or (found is not None and Path(found).resolve() == here.resolve()):
        return "streamtrain"
    return shlex.quote(sys.argv[0])
