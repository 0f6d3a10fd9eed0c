"""Predictor: answers the requests topic with the newest snapshot, exactly once or at least once.

The loop is native; here a follower thread makes each new snapshot ready and hands it over between two batches. Several
predictors share the work as one consumer group.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol

from streamtrain import _native
from streamtrain.columns.served import Served
from streamtrain.compute.torch import TorchModule, in_process_of_its_own
from streamtrain.errors import KafkaBroken, KafkaSettling, SnapshotError, StreamtrainError, UserMistake
from streamtrain.job import Job
from streamtrain.kafka import library
from streamtrain.kafka.following import Following
from streamtrain.kafka.settings import Purpose, client_settings
from streamtrain.kafka.snapshot_reader import SnapshotTopic, Version
from streamtrain.log import Reminder, get_logger, logger_without_repeats
from streamtrain.run.predictor_events import Events
from streamtrain.run.request_spans import RequestSpans
from streamtrain.schemas import Ask, SchemaRegistry, decoded_by, named_format
from streamtrain.telemetry.tracing import Tracing, opened
from streamtrain.topics.chunks import Stored

HELP = "answers requests with the newest snapshot"
log = get_logger(__name__)
retries = logger_without_repeats(f"{__name__}.retries")

_SLOT_ROWS = 256  # predicted at once; requests for more take several
_TURN_MS = 100  # of the native loop between two looks at `stop`
_FINISH_S = 30.0  # for answers on their way at the end

NEWEST = "newest"  # the name of the one that follows the snapshots
_Ready = tuple[Served, _native.RequestScorer]


class Stop(Protocol):
    def is_set(self) -> bool: ...


@dataclass(frozen=True)
class Config:
    """Plain settings, so that a process can be spawned with them."""

    job: str
    format: Mapping[str, Any]  # of requests, as of records: {"name": …} and its options
    registry: Mapping[str, Any] = field(repr=False)  # properties of its client; may hold secrets
    requests: str  # topics
    predictions: str
    kafka_consumer: dict[str, str] = field(repr=False)  # may hold secrets
    kafka_producer: dict[str, str] = field(repr=False)
    delivery: str = "exactly_once"
    snapshot: Version | None = None  # None: follow the newest
    until_end: bool = False
    backend: str = "cpu"
    module: Mapping[str, Any] | None = None  # the network of the job, where it is not of layers
    traces: str = ""  # the exporter of spans: telemetry/tracing.py

    @property
    def group(self) -> str:
        """Returns the consumer group whose offsets record what was answered."""
        return f"{self.job}.predict"

    @classmethod
    def of(cls, job: Job, snapshot: Version | None = None, until_end: bool = False, traces: str = "") -> Config:
        return cls(
            job=job.name,
            format=named_format(job),
            registry=dict(job.registry.properties),
            requests=str(job.topic("requests").name),
            predictions=str(job.topic("predictions").name),
            kafka_consumer=job.kafka_consumer(),
            kafka_producer=job.kafka_producer(),
            delivery=job.predict.delivery,
            snapshot=snapshot,
            until_end=until_end,
            module=None if job.network is None else job.network.to_dict(),
            traces=traces,
        )


def run(config: Config) -> int:
    """In a process of its own: until it is killed, or with `until_end` to the end; gives the exit code."""
    answer(config, Event())
    return 0


def answer(
    config: Config, stop: Stop, report: Callable[[dict[str, int]], None] = lambda counters: None
) -> dict[str, int]:
    """Answers as answer_traced(), with spans if the config has traces."""
    tracing = opened(config.traces)
    try:
        return answer_traced(config, stop, report, tracing)
    finally:
        if tracing is not None:
            tracing.close()


def answer_traced(
    config: Config, stop: Stop, report: Callable[[dict[str, int]], None], tracing: Tracing | None
) -> dict[str, int]:
    """Answers until `stop` is set, or with `until_end` to the end the topic had at the start; gives what was answered.

    `report` gets the counters after each turn, with "version" 0 until there is a snapshot to predict with,
    "snapshot_made_ms", when that was made, and "waiting", of how many partitions the next request needs a schema that
    is not known yet: the others go on.
    """
    library.load()
    if config.module:
        in_process_of_its_own()
    try:
        native = _native.Predictor(
            list(consumer_settings(config).items()),
            list(producer_settings(config).items()),
            config.requests,
            config.predictions,
            exactly_once=config.delivery == "exactly_once",
            until_end=config.until_end,
            traced=tracing is not None,
        )
    except RuntimeError as error:
        raise UserMistake(f"[kafka] {error}") from None
    spans = RequestSpans(tracing, config.job, config.requests)
    events = Events(config.kafka_consumer, (config.requests, config.predictions) if config.until_end else ())
    schemas = SchemaRegistry(config.registry, config.requests, config.format["name"])
    feed = _Feed(config, native, schemas.ask)
    feed.start()
    try:
        finished = False
        while not finished and not stop.is_set():
            finished = native.run(_TURN_MS)
            if native.counters()["waiting"] and schemas.ask_again():
                native.look_again()
            events.log(native)
            spans.take(native)
            events.check()
            feed.check()
            report(feed.counters())
    except _native.KafkaFailure as failure:
        events.log(native)
        raise events.explained(*failure.args) from None
    finally:
        feed.stop()
        _finish(native, events)
        events.log(native)
        spans.take(native)
        spans.close()
    return feed.counters()


def _finish(native: _native.Predictor, events: Events) -> None:
    """Waits for the answers on their way, in turns, so that a second signal is heard; then leaves the group."""
    until_s = time.monotonic() + _FINISH_S
    try:
        while not (arrived := native.finish(_TURN_MS)) and time.monotonic() < until_s:
            pass
    except _native.KafkaFailure as failure:
        events.log(native)
        raise events.explained(*failure.args) from None
    finally:
        native.close(0)
    if not arrived:
        log.warning("not all answers were acknowledged; their requests will be answered again", waited_s=_FINISH_S)


def consumer_settings(config: Config) -> dict[str, str]:
    """Returns the settings of the consumer that reads requests."""
    purpose = Purpose.REQUESTS if config.delivery == "exactly_once" else Purpose.REQUESTS_ONCE
    return client_settings(purpose, config.kafka_consumer, {"group.id": config.group})


def producer_settings(config: Config) -> dict[str, str]:
    """Returns the settings of the producer that writes answers. For exactly-once delivery each predictor has a
    transactional.id of its own, so nobody fences it."""
    if config.delivery != "exactly_once":
        return client_settings(Purpose.ANSWER_ONCE, config.kafka_producer)
    own = {"transactional.id": f"{config.group}.{uuid.uuid4()}"}
    return client_settings(Purpose.ANSWER, config.kafka_producer, own)


class _Feed(Following[_Ready]):
    """Makes each new snapshot ready, and hands it to the native loop."""

    def __init__(self, config: Config, native: _native.Predictor, schemas: Ask) -> None:
        kafka = config.kafka_consumer
        topic = SnapshotTopic(config.job, kafka["bootstrap.servers"], kafka, purpose=Purpose.SERVE)
        super().__init__(topic, "snapshots", config.snapshot)
        self._config = config
        self._native = native
        self._format = decoded_by(config.format, schemas)
        self._served: Served | None = None  # that predicts
        self._network = TorchModule.from_dict(config.module) if config.module else None
        self._waiting_for, self._reminder = "snapshot", Reminder()
        self._failure: Exception | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end()

    def check(self) -> None:
        """Raises what ended the thread."""
        if self._failure is not None:
            raise self._failure

    def counters(self) -> dict[str, int]:
        manifest = None if self._served is None else self._served.manifest
        version, created_ms = (0, 0) if manifest is None else (manifest.version, manifest.created_ms)
        return {**self._native.counters(), "version": version, "snapshot_made_ms": created_ms}

    def _follow(self) -> None:
        self._looked()
        super()._follow()

    def _prepared(self, stored: Stored) -> _Ready:
        served = Served.of(stored.manifest, stored.digest, stored.model, self._served, self._network)
        return served, served.request_scorer(self._format, _SLOT_ROWS, self._config.backend)

    def _take(self, ready: _Ready) -> None:
        served, scorer = ready
        if served.manifest.untrained and self._config.snapshot is None:
            self._waiting_for = "trained snapshot"
            self._reminder.anew()
            return
        self._native.serve([(NEWEST, scorer)])
        log.info("predicting", version=served.version, digest=served.digest[:12])
        self._served = served

    def _failed(self, error: Exception) -> bool:
        """With a model at hand, which is kept, the snapshots are followed anew after whatever Kafka says; without one
        when nobody leads their topic yet, or only the client broke, but not where a given snapshot is wanted.
        """
        follows = self._config.snapshot is None and isinstance(error, KafkaBroken | KafkaSettling)
        if not isinstance(error, StreamtrainError) or not (self._served is not None or follows):
            self._failure = error
            return False
        if isinstance(error, KafkaSettling):
            log.debug(str(error))
        else:
            retries.warning(f"{error}; following the snapshots anew")
        return True

    def _refused(self, text: str) -> None:
        """A snapshot is no good: the one before goes on, or the next is waited for, but not by a bounded run."""
        if self._config.until_end and self._served is None:
            raise SnapshotError(text)
        log.warning(text)

    def _looked(self) -> None:
        """Says what is waited for while there is none, at once and then again."""
        if self._served is None and self._reminder.due():
            log.info(f"waiting for the first {self._waiting_for} of {self._config.job}")
