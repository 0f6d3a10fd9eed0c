"""Look at jobs in a browser: how they learn, live, from their topics alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamtrain.cli.session import Session, command
from streamtrain.cli.stopping import StopSignals
from streamtrain.cli.token import HOST, TokenFile, is_local, token_for
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.job.kafka_settings import KafkaSettings
from streamtrain.serving.asgi import LOOPBACK
from streamtrain.ui.cluster import Cluster
from streamtrain.ui.page_server import application, nicegui, serve
from streamtrain.ui.scraping import given

ORDER = 115
PORT = 9000
HERE = LOOPBACK[0]
ANYWHERE = "localhost:9092"
app = typer.Typer(add_completion=False)


@app.command("ui")
@command
def ui_(
    session: Session,
    jobs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="JOB.toml", help="Job files, for their Kafka; every job there is shown.", show_default=False
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: one that is free.")] = PORT,
    host: Annotated[str, typer.Option(help=HOST)] = HERE,
    token_file: TokenFile = None,
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="Show only jobs whose names begin with it.", show_default=False)
    ] = "",
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[JOB=]URL",
            help="Where a process serves its metrics (--metrics-port); repeatable.",
            show_default=False,
        ),
    ] = None,
    root_path: Annotated[str, typer.Option(help="The path under which a proxy serves it.", show_default=False)] = "",
) -> None:
    """Show every job of a Kafka in a browser: quality, speed, lag, what happened; from topics alone, changing none.

    What a job's processes take, and whether they live, their metrics tell: --metrics http://127.0.0.1:9400.
    Works beside a running trainer, after it, and on another host. Needs the extra `ui`.
    """
    nicegui()
    token = token_for(host, token_file)
    hosts = (*LOOPBACK, host) if is_local(host) else ()
    found, addresses = [session.job(path) for path in jobs or []], [given(text) for text in metrics or []]
    cluster = Cluster(_kafka(session, found), found, addresses, prefix)

    def ready(free: int) -> None:
        url_host = f"[{host}]" if ":" in host else host
        url = f"http://{url_host}:{free}{root_path}/"
        text = f"jobs of {cluster.bootstrap} are shown at {url}; Ctrl-C ends it"
        session.out.line({"event": "serving", "url": url}, text)

    with StopSignals() as stop:
        try:
            serve(application(cluster, hosts, token, root_path), host, port, ready, stop.is_set)
        finally:
            cluster.close()
    raise typer.Exit(stop.code)


def _kafka(session: Session, jobs: list[Job]) -> KafkaSettings:
    """Returns the Kafka settings of the job files, which must agree; without job files those of --bootstrap."""
    if not jobs:
        return KafkaSettings({"bootstrap.servers": session.bootstrap or ANYWHERE})
    others = sorted({job.kafka.bootstrap for job in jobs})
    if len(others) > 1:
        raise UserMistake(f"ui: expected jobs of one Kafka, got {', '.join(others)}; start one for each")
    return jobs[0].kafka
