"""Predictor: answers the requests topic with the newest snapshot, exactly once or at least once.

The loop is native; here a follower thread makes each new snapshot ready and hands it over between two batches. Several
predictors share the work as one consumer group.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from streamtrain import _native
from streamtrain.columns.plan import native_plan
from streamtrain.columns.served import schema_and_model
from streamtrain.compute import snapshot
from streamtrain.compute.model import aligned
from streamtrain.errors import KafkaBroken, SnapshotError, StreamtrainError, UserMistake
from streamtrain.job import Job
from streamtrain.kafka import library
from streamtrain.kafka.chunks import Stored
from streamtrain.kafka.consumer import Settings
from streamtrain.kafka.follower import follow
from streamtrain.kafka.snapshots import SnapshotTopic
from streamtrain.log import get_logger, logger_without_repeats
from streamtrain.run.predictor_events import Events
from streamtrain.topics.manifest import Manifest

HELP = "answers requests with the newest snapshot"
log = get_logger(__name__)
retries = logger_without_repeats(f"{__name__}.retries")

_SLOT_ROWS = 256  # predicted at once; requests for more take several
_TURN_MS = 100  # of the native loop between two looks at `stop`
_FINISH_S = 30.0  # for answers on their way at the end
_JOIN_S = 10.0
_ANEW_S = 1.0
_SAY_AGAIN_S = 10.0  # what has been said and still holds

CONSUMER_DEFAULTS = {
    # How long an idle fetch lies at the broker; a request ends it at once. A shorter one only comes again sooner, at
    # 5 ms 200 times a second, and what arrives in between waits: p99 at 1,000 requests/s 0.87 ms instead of 0.76.
    "fetch.wait.max.ms": "100",
    "fetch.queue.backoff.ms": "5",
    "fetch.error.backoff.ms": "50",
    "session.timeout.ms": "10000",  # a killed predictor's partitions are free after this
    "heartbeat.interval.ms": "2000",
    "queued.max.messages.kbytes": "16384",
    "topic.metadata.refresh.interval.ms": "10000",
    "reconnect.backoff.max.ms": "1000",
}
PRODUCER_DEFAULTS = {
    "linger.ms": "0",
    "queue.buffering.max.kbytes": "65536",  # of answers on their way
    "partitioner": "murmur2_random",  # where the Java clients put the same key
    "retry.backoff.ms": "1",  # p50 of a small transaction 4 ms instead of 105
    "retry.backoff.max.ms": "20",
    "reconnect.backoff.max.ms": "1000",  # a broker that is back is heard of within a second
}
TRANSACTION_TIMEOUT_MS = 5000
_Prepared = tuple[Manifest, bytes, _native.RequestScorer]  # with the manifest's digest


class Stop(Protocol):
    def is_set(self) -> bool: ...


@dataclass(frozen=True)
class Config:
    """Plain settings, so that a process can be spawned with them."""

    job: str
    format: str  # of requests, as of records
    requests: str  # topics
    predictions: str
    kafka_consumer: dict[str, str] = field(repr=False)  # may hold secrets
    kafka_producer: dict[str, str] = field(repr=False)
    delivery: str = "exactly_once"
    snapshot: int | None = None  # None: follow the newest
    until_end: bool = False
    backend: str = "cpu"

    @property
    def group(self) -> str:
        """Whose offsets say what was answered."""
        return f"{self.job}.predict"

    @classmethod
    def of(cls, job: Job, snapshot: int | None = None, until_end: bool = False) -> Config:
        return cls(
            job=job.name,
            format=job.records.format,
            requests=str(job.topic("requests").name),
            predictions=str(job.topic("predictions").name),
            kafka_consumer=job.kafka_consumer(),
            kafka_producer=job.kafka_producer(),
            delivery=job.predict.delivery,
            snapshot=snapshot,
            until_end=until_end,
        )


def run(config: Config, stop: Stop, report: Callable[[dict[str, int]], None] = lambda counters: None) -> dict[str, int]:
    """Answers until `stop` is set, or with `until_end` to the end the topic had at the start; gives what was answered.

    `report` gets the counters after each turn, with "version" 0 until there is a snapshot to predict with, and
    "snapshot_made_ms", when that was made.
    """
    library.load()
    try:
        native = _native.Predictor(
            consumer_settings(config),
            producer_settings(config),
            config.requests,
            config.predictions,
            exactly_once=config.delivery == "exactly_once",
            until_end=config.until_end,
        )
    except RuntimeError as error:
        raise UserMistake(f"[kafka] {error}") from None
    events = Events(config.kafka_consumer, (config.requests, config.predictions) if config.until_end else ())
    feed = _Feed(config, native)
    feed.start()
    try:
        finished = False
        while not finished and not stop.is_set():
            finished = native.run(_TURN_MS)
            events.log(native)
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


def consumer_settings(config: Config) -> Settings:
    """The job's settings over our defaults, and what the group's exactness rests on over both."""
    at_least_once = config.delivery != "exactly_once"
    owned = {
        "group.id": config.group,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",  # of a group that has no offset yet: every request is answered
        "enable.auto.offset.store": "false",
        "enable.auto.commit": str(at_least_once).lower(),
        "auto.commit.interval.ms": "500",
        "enable.partition.eof": "true",  # by which it is seen that the consumer has not gone deaf
        "partition.assignment.strategy": "range,roundrobin",
    }
    return list({**CONSUMER_DEFAULTS, **config.kafka_consumer, **owned}.items())


def producer_settings(config: Config) -> Settings:
    """As consumer_settings. A transactional.id of its own for each predictor: it is fenced by nobody."""
    owned = {"enable.idempotence": "true"}
    if config.delivery == "exactly_once":
        owned["transactional.id"] = f"{config.group}.{uuid.uuid4()}"
        owned["transaction.timeout.ms"] = str(TRANSACTION_TIMEOUT_MS)
    else:
        owned["message.timeout.ms"] = "30000"  # then its requests are read again
    return list({**PRODUCER_DEFAULTS, **config.kafka_producer, **owned}.items())


class _Feed:
    """Makes each new snapshot ready, in a thread of its own, and hands it to the native loop."""

    def __init__(self, config: Config, native: _native.Predictor) -> None:
        self._config = config
        self._native = native
        self._version, self._made_ms = 0, 0  # of the snapshot that predicts
        self._wanted, self._said_s = "snapshot", float("-inf")
        self._failure: Exception | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="snapshots", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(_JOIN_S)

    def check(self) -> None:
        """Raises what ended the thread."""
        if self._failure is not None:
            raise self._failure

    def counters(self) -> dict[str, int]:
        return {**self._native.counters(), "version": self._version, "snapshot_made_ms": self._made_ms}

    def _run(self) -> None:
        # Snapshots are rare: their idle fetches need not take the broker from the requests 100 times a second.
        kafka = {"fetch.wait.max.ms": CONSUMER_DEFAULTS["fetch.wait.max.ms"], **self._config.kafka_consumer}
        while not self._stopped.is_set():
            try:
                with SnapshotTopic(self._config.job, kafka["bootstrap.servers"], kafka) as topic:
                    for prepared in self._snapshots(topic):
                        self._serve(*prepared)
                return
            except Exception as failure:
                if not isinstance(failure, StreamtrainError) or not self._goes_on(failure):
                    self._failure = failure
                    return
                retries.warning(f"{failure}; following the snapshots anew")
                self._stopped.wait(_ANEW_S)

    def _goes_on(self, failure: StreamtrainError) -> bool:
        """Whether the snapshots are followed anew after `failure`: with a model at hand, which is kept, after any;
        without one when it was only the client that broke. Not where one given snapshot is all that is wanted."""
        return self._config.snapshot is None and (self._version > 0 or isinstance(failure, KafkaBroken))

    def _snapshots(self, topic: SnapshotTopic) -> Iterator[_Prepared]:
        if self._config.snapshot is not None:
            yield self._prepared(topic.version(self._config.snapshot, trainer=False))
            return
        newer = follow(
            topic, self._prepared, self._is_over, newest_only=True, after=self._version, reject=self._rejected
        )
        for manifest, digest, scorer in newer:
            if manifest.untrained:
                self._wanted, self._said_s = "trained snapshot", float("-inf")
            else:
                yield manifest, digest, scorer

    def _prepared(self, stored: Stored) -> _Prepared:
        return stored.manifest, stored.digest, make_scorer(stored, self._config.format, self._config.backend)

    def _rejected(self, text: str) -> None:
        """A snapshot is no good: the one before goes on, or the next is waited for, but not by a bounded run."""
        if self._config.until_end and self._version == 0:
            raise SnapshotError(text)
        log.warning(text)

    def _is_over(self) -> bool:
        """Asked after each look for snapshots: says what is waited for while there is none, at once and then again."""
        now_s = time.monotonic()
        if self._version == 0 and now_s - self._said_s >= _SAY_AGAIN_S:
            self._said_s = now_s
            log.info(f"waiting for the first {self._wanted} of {self._config.job}")
        return self._stopped.is_set()

    def _serve(self, manifest: Manifest, digest: bytes, scorer: _native.RequestScorer) -> None:
        self._native.serve(scorer)
        log.info("predicting", version=manifest.version, digest=digest.hex()[:12])
        self._made_ms, self._version = manifest.created_ms, manifest.version


def make_scorer(stored: Stored, format: str, backend: str = "cpu") -> _native.RequestScorer:
    """What answers requests in `format` with one snapshot. SnapshotError where it holds nothing to predict with."""
    manifest = stored.manifest
    columns, model = schema_and_model(manifest)
    schema = columns.for_requests()
    state = aligned(model.state_bytes)
    snapshot.load(model.layout, state, stored.model)
    layout = _native.SlotLayout.make(_SLOT_ROWS, 1, schema.block_specs())
    plan = model.compile(backend, layout, state, base=state[model.learned_bytes :], train=False)
    return _native.RequestScorer(
        plan, native_plan(schema, layout), format, schema.class_names, manifest.version, stored.digest.hex()
    )
