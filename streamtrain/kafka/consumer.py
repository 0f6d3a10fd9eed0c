"""Face of the native consumer: the settings it is made with, and messages for places where speed is no matter.

The ingest and the predictor use the native consumer from C++; only their settings come from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from confluent_kafka import KafkaError

from streamtrain import _native
from streamtrain.errors import StreamtrainError, UserMistake
from streamtrain.kafka import library
from streamtrain.kafka.errors import Heard, explain

BEGINNING, END, INVALID = -2, -1, -1001
PARTITION_EOF, ALL_BROKERS_DOWN = -191, -187

Settings = list[tuple[str, str]]

# What ingest depends on; a job may not set these. Each queued message costs 320 bytes beyond the kilobytes counted.
INGEST_OWNED = {
    "check.crcs": "true",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
}
INGEST_DEFAULTS = {
    "queued.min.messages": "100000",
    "queued.max.messages.kbytes": "16384",
    "fetch.queue.backoff.ms": "5",  # the default of 1000 stalls a reader that is faster than the network
    "fetch.wait.max.ms": "20",
    "topic.metadata.refresh.interval.ms": "10000",
    "reconnect.backoff.max.ms": "1000",
}


class Message(NamedTuple):
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    error: int
    error_text: str


class Event(NamedTuple):
    """A log line, broker error or delivery failure of librdkafka; level as in syslog (3 error, 4 warning, 7 debug)."""

    level: int
    code: int
    fatal: bool
    facility: str
    text: str


def flat_settings(kafka: Mapping[str, object]) -> dict[str, str]:
    """librdkafka properties from a mapping: nested tables joined by dots, booleans as true and false."""
    flat: dict[str, str] = {}
    for name, value in kafka.items():
        if isinstance(value, Mapping):
            flat.update({f"{name}.{inner}": text for inner, text in flat_settings(value).items()})
        else:
            flat[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return flat


def ingest_config(kafka: Mapping[str, object], group: str = "streamtrain") -> Settings:
    """Settings of the ingest's consumer: the job's [kafka] over our defaults, and what ingest owns over both.

    `group` must be named (librdkafka asks for it), but is never joined.
    """
    return list({**INGEST_DEFAULTS, **flat_settings(kafka), **INGEST_OWNED, "group.id": group}.items())


class KafkaConsumer:
    """The native consumer for Python. Manual assignment or subscription; one thread at a time."""

    def __init__(self, settings: Mapping[str, object] | Settings) -> None:
        library.load()
        self._bootstrap = str(dict(settings).get("bootstrap.servers", "the given address"))
        self.heard = Heard()
        pairs = list(flat_settings(settings).items()) if isinstance(settings, Mapping) else settings
        try:
            self.native = _native.KafkaConsumer(pairs)
        except RuntimeError as error:
            raise UserMistake(f"[kafka] {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def assign(self, topic: str, offsets: Sequence[tuple[int, int]]) -> None:
        self.native.assign(topic, list(offsets))

    def subscribe(self, topic: str) -> None:
        self.native.subscribe(topic)

    def consume(self, capacity: int = 1000, timeout_s: float = 0.1) -> list[Message]:
        return [Message(*fields) for fields in self.native.consume(capacity, int(timeout_s * 1000))]

    def partition_count(self, topic: str, timeout_s: float = 10) -> int:
        """Raises KafkaUnreachable when no broker answers, StreamtrainError for a topic that is not there."""
        try:
            count = self.native.partition_count(topic, int(timeout_s * 1000))
        except _native.KafkaFailure as failure:
            raise self.explain(failure) from None
        self.heard.clear()
        return count

    def topic_id(self, topic: str, timeout_s: float = 10) -> str:
        """The topic's id in base64; a topic deleted and made again has another. Raises as partition_count does."""
        try:
            found = self.native.topic_id(topic, int(timeout_s * 1000))
        except _native.KafkaFailure as failure:
            raise self.explain(failure) from None
        self.heard.clear()
        return found

    def events(self) -> list[Event]:
        """What librdkafka's threads have said since the last call; `heard` takes note of what is wrong."""
        events = [Event(*fields) for fields in self.native.drain_events()]
        for event in events:
            if event.level <= 4:
                self.heard.take(event.code, event.text)
        return events

    def close(self) -> None:
        self.native.close()

    def explain(self, failure: _native.KafkaFailure, reads_on: bool = False) -> StreamtrainError:
        """Our error for one of librdkafka's, with what its threads have said meanwhile.

        The error callback is served by consuming: whoever does not `reads_on` has to assign again.
        """
        if not reads_on:
            self.consume(1, 0.0)
        self.events()
        code, text = failure.args
        what, _, text = text.partition(": ")
        return explain(KafkaError(code, text), what, self._bootstrap, self.heard)
