"""Answer the requests with the newest snapshot, or with a given one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated

import typer

from streamtrain.cli import exposed_metrics
from streamtrain.cli.session import JobFile, Session, command
from streamtrain.cli.snapshot_named import option, parse_version
from streamtrain.cli.stopping import StopSignals
from streamtrain.errors import UserMistake
from streamtrain.kafka.lag import GroupLag
from streamtrain.log import get_logger
from streamtrain.record_sources.topic_source import warn_of_open_transaction
from streamtrain.run.roles import predictor
from streamtrain.telemetry.tracing import find_exporter

ORDER = 80
SAY_EVERY_S = 5.0
log = get_logger(__name__)
app = typer.Typer(add_completion=False)


@app.command()
@command
def predict(
    session: Session,
    job: JobFile,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop at the current end of the requests.")] = False,
    snapshot: Annotated[
        str | None,
        option("--snapshot", "--version", help="Stay with snapshot N, or the best one; default: the newest."),
    ] = None,
    metrics_port: exposed_metrics.MetricsPort = None,
    metrics_host: exposed_metrics.MetricsHost = "127.0.0.1",
) -> None:
    """Answer the requests with the newest snapshot, or with a given one; several may run and share the work.

    Requests wait for the first trained snapshot. Ctrl-C or SIGTERM ends it when what was answered is written; a second
    one stops at once.
    """
    found = session.connected_job(job)
    config = predictor.Config.of(found, parse_version(snapshot), until_end, find_exporter(os.environ))
    admin = session.admin(found)
    there = admin.topic_ids([config.requests, config.predictions])
    missing = [name for name, topic_id in there.items() if topic_id is None]
    if missing:
        raise UserMistake(f"{', '.join(missing)}: not in Kafka; make them with `streamtrain topics create {job}`")
    if until_end and (requests := admin.ends([config.requests])[config.requests]) is not None:
        warn_of_open_transaction(admin, config.requests, len(requests.ends))
    with ExitStack() as opened:
        listeners: list[Callable[[dict[str, int]], None]] = [_View()]
        if metrics_port is not None:
            telemetry = opened.enter_context(_metrics(metrics_host, metrics_port, config))
            listeners.append(lambda counters: telemetry({"event": "answered", **counters}))

        def report(counters: dict[str, int]) -> None:
            for listener in listeners:
                listener(counters)

        stop = opened.enter_context(StopSignals())
        counters = predictor.answer(config, stop, report)
    text = f"{counters['rows']:,} rows in {counters['requests']:,} requests answered, snapshot {counters['version']}"
    session.out.document({"job": found.name, **counters, "stopped": stop.is_set()}, text)
    raise typer.Exit(stop.code)


def _metrics(host: str, port: int, config: predictor.Config) -> exposed_metrics.Served:
    from streamtrain.telemetry.predictor_metrics import PredictorMeters

    lag = GroupLag(config.kafka_consumer, config.group, config.requests, exposed_metrics.ANSWER_S)
    return exposed_metrics.serve(host, port, PredictorMeters(config.job), lag.ask)


class _View:
    """Says now and then how many were answered."""

    def __init__(self) -> None:
        self._said_s = time.monotonic()
        self._rows = 0

    def __call__(self, counters: dict[str, int]) -> None:
        seconds = time.monotonic() - self._said_s
        if seconds >= SAY_EVERY_S:
            rows_per_s = (counters["rows"] - self._rows) / seconds
            said = {name: counters[name] for name in ("requests", "rows", "errors", "rewinds", "version")}
            log.info("answered", **said, rows_per_s=round(rows_per_s))
            self._said_s, self._rows = time.monotonic(), counters["rows"]
