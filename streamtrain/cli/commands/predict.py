"""Answer the requests with the newest snapshot, or with a given one."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from streamtrain.cli.session import JobFile, Session, command
from streamtrain.cli.stopping import INTERRUPTED, StopSignals
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.log import get_logger
from streamtrain.processes import predictor

ORDER = 80
SAY_EVERY_S = 5.0
log = get_logger(__name__)
app = typer.Typer(add_completion=False)


@app.command()
@command
def predict(
    session: Session,
    job: JobFile,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop where the requests end now.")] = False,
    snapshot: Annotated[
        int | None,
        typer.Option(metavar="N", help="Stay with snapshot N; default: follow the newest.", show_default=False),
    ] = None,
) -> None:
    """Answer the requests with the newest snapshot, or with a given one; several may run and share the work.

    Requests wait for the first trained snapshot. Ctrl-C or SIGTERM ends it when what was answered is written.
    """
    found = session.connected_job(job)
    missing = [name for name in _topics(found) if name not in session.admin(found).names()]
    if missing:
        raise UserMistake(f"{', '.join(missing)}: not in Kafka; make them with `streamtrain topics create {job}`")
    view = _View()
    with StopSignals() as stop:
        counters = predictor.run(config(found, until_end, snapshot), stop, view)
    text = f"{counters['rows']:,} rows in {counters['requests']:,} requests answered, snapshot {counters['version']}"
    session.out.document({"job": found.name, **counters, "stopped": stop.is_set()}, text)
    raise typer.Exit(INTERRUPTED if stop.interrupted else 0)


def _topics(job: Job) -> tuple[str, str]:
    return str(job.topic("requests").name), str(job.topic("predictions").name)


def config(job: Job, until_end: bool = False, snapshot: int | None = None) -> predictor.Config:
    """The predictor's plain settings for a job."""
    requests, predictions = _topics(job)
    return predictor.Config(
        job=job.name,
        format=job.records.format,
        requests=requests,
        predictions=predictions,
        kafka_consumer=job.kafka_consumer(),
        kafka_producer=job.kafka_producer(),
        delivery=job.predict.delivery,
        snapshot=snapshot,
        until_end=until_end,
    )


class _View:
    """Says now and then how many were answered."""

    def __init__(self) -> None:
        self._said_s = time.monotonic()
        self._rows = 0

    def __call__(self, counters: dict[str, int]) -> None:
        seconds = time.monotonic() - self._said_s
        if seconds >= SAY_EVERY_S:
            rows_per_s = (counters["rows"] - self._rows) / seconds
            log.info("answered", **counters, rows_per_s=round(rows_per_s))
            self._said_s, self._rows = time.monotonic(), counters["rows"]
