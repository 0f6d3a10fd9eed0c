"""--metrics-port of the commands that go on for ever: what is served there, and what Kafka is asked for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Annotated, Any, TypeAlias

import typer

from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.log import get_logger

ANSWER_S = 5.0  # Kafka has so long to say how far behind a process is; then it is away
log = get_logger(__name__)

MetricsPort = Annotated[
    int | None,
    typer.Option(min=0, max=65_535, help="Port of the Prometheus metrics and readiness.", show_default=False),
]
MetricsHost = Annotated[
    str, typer.Option(help="Address of the metrics; 0.0.0.0 lets other machines read them.")
]
Served: TypeAlias = AbstractContextManager[Callable[[dict[str, Any]], None]]  # what it gives takes the events


def of_trainer(host: str, port: int, job: Job) -> Served:
    """A trainer's metrics, not yet open; raises UserMistake where they cannot be served there."""
    from streamtrain.telemetry.trainer_metrics import TrainerMeters

    meters = TrainerMeters(job.name, job.rounds.prefetch_buffer)
    admin, name = Admin(job.kafka.bootstrap, job.kafka_admin(), ANSWER_S), str(job.topic("records").name)

    def lag() -> dict[int, int]:
        spans = admin.spans(name) or ()
        meters.behind_open_transaction(admin.behind_open_transaction(name, len(spans)) if spans else [])
        return meters.lag([end for _, end in spans])

    return serve(host, port, meters, lag)


def serve(host: str, port: int, meters: Any, lag: Callable[[], Mapping[int, int]]) -> Served:
    """Metrics, not yet open; raises UserMistake where they cannot be served there."""
    from streamtrain.telemetry.metrics_server import Telemetry

    telemetry = Telemetry(port, meters, lag, host)
    log.info("metrics and readiness are served", port=telemetry.port)
    return telemetry
