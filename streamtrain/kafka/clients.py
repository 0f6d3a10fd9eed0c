"""Faces of the native consumer and producer, for places where speed is no matter: ingest and the predictor use them
from C++.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, Self, TypeVar

from streamtrain import _native
from streamtrain._native import KafkaCode
from streamtrain.closing import Closing
from streamtrain.errors import StreamtrainError, UserMistake
from streamtrain.kafka import library
from streamtrain.kafka.error_codes import Heard, explain
from streamtrain.kafka.settings import Purpose, client_settings, flat_settings
from streamtrain.log import librdkafka_logger

ANY_PARTITION = -1  # by the key
NO_GROUP = "streamtrain"
_ROOM_MS = 50  # of waiting for deliveries while the queue is full
C = TypeVar("C", _native.KafkaConsumer, _native.KafkaProducer, _native.KafkaTransactionalProducer)
P = TypeVar("P", _native.KafkaProducer, _native.KafkaTransactionalProducer)
_LEVELS = (*[logging.ERROR] * 4, logging.WARNING, logging.INFO, logging.INFO, logging.DEBUG)  # by syslog's


class Message(NamedTuple):
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    error: int
    error_text: str

    def around(self) -> _native.RecordAround:
        """Returns the message's metadata, without its value."""
        return _native.RecordAround(self.partition, self.offset, self.timestamp_ms, self.key, self.headers)


class Event(NamedTuple):
    """A log line, broker error or delivery failure of librdkafka.

    level as in syslog: 2 the client is of no use any more, 3 error, 4 warning, 7 debug.
    """

    level: int
    code: int
    facility: str
    text: str

    def log(self) -> None:
        librdkafka_logger().log(_LEVELS[min(self.level, 7)], "%s: %s", self.facility, self.text)


class _Client(Closing, Generic[C]):
    """A client made from settings; what its threads say goes to `heard` and to the log."""

    def __init__(self, make: Callable[[list[tuple[str, str]]], C], settings: Mapping[str, object]) -> None:
        library.load()
        self._bootstrap = str(settings.get("bootstrap.servers", "the given address"))
        self.heard = Heard(settings)
        try:
            self.native: C = make(list(flat_settings(settings).items()))
        except RuntimeError as error:
            raise UserMistake(f"[kafka] {error}") from None

    def events(self) -> list[Event]:
        """Returns what librdkafka's threads reported since the last call; `heard` records warnings and errors."""
        events = [Event(*fields) for fields in self.native.drain_events()]
        for event in events:
            if event.level <= 4:
                self.heard.take(event.code, event.text)
        return events

    def hear(self) -> None:
        """Logs what librdkafka's threads have said since the last call."""
        for event in self.events():
            event.log()

    def answered(self) -> None:
        """Drains events and clears `heard`: errors from before an answer explain nothing after it."""
        self.events()
        self.heard.clear()

    def close(self) -> None:
        self.native.close()


class KafkaConsumer(_Client[_native.KafkaConsumer]):
    """Manual assignment; one thread at a time."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        super().__init__(_native.KafkaConsumer, settings)

    @classmethod
    def open(cls, purpose: Purpose, kafka: Mapping[str, object], group: str = NO_GROUP) -> Self:
        """One for `purpose`, with the user's settings. `group` is named, for librdkafka asks for it, and not joined."""
        return cls(client_settings(purpose, kafka, {"group.id": group}))

    def assign(self, topic: str, offsets: Sequence[tuple[int, int]]) -> None:
        self.native.assign(topic, list(offsets))

    def consume(self, capacity: int = 1000, timeout_s: float = 0.1) -> list[Message]:
        return [Message(*fields) for fields in self.native.consume(capacity, int(timeout_s * 1000))]

    def partition_count(self, topic: str, timeout_s: float = 10) -> int:
        """Raises KafkaUnreachable when no broker answers, StreamtrainError for a topic that is not there."""
        try:
            count = self.native.partition_count(topic, int(timeout_s * 1000))
        except _native.KafkaFailure as failure:
            raise self.explain(failure) from None
        self.answered()
        return count

    def bounds(self, topic: str, partition: int, timeout_s: float = 8) -> tuple[int, int]:
        """(first offset, last stable offset). Raises as partition_count does."""
        try:
            low, end = self.native.watermarks(topic, partition, int(timeout_s * 1000))
        except _native.KafkaFailure as failure:
            raise self.explain(failure) from None
        self.answered()
        return low, end

    def explain(self, failure: _native.KafkaFailure, reads_on: bool = False) -> StreamtrainError:
        """Our error for one of librdkafka's, with what its threads have said meanwhile.

        The error callback is served by consuming: whoever does not `reads_on` has to assign again.
        """
        if not reads_on:
            self.consume(1, 0.0)
        self.events()
        code, text = failure.args
        what, _, text = text.partition(": ")
        return explain(code, text, what, self._bootstrap, self.heard)


class _Producer(_Client[P]):
    """One thread at a time."""

    def produce(
        self, topic: str, value: bytes | memoryview | None, key: bytes | None = None, *, partition: int = ANY_PARTITION,
        headers: Sequence[tuple[str, bytes | None]] = (), note: bool = False,
    ) -> int:  # fmt: skip
        """Queues a copy of the record, and waits for room; gives 0, or librdkafka's code for one that cannot be sent.

        Of the records with `note`, `native.noted_offset` is that of the last delivered.
        """
        data = value if isinstance(value, bytes | None) else bytes(value)
        while code := self.native.produce(topic, data, key, partition, list(headers), note=note):
            if code != KafkaCode.QUEUE_FULL:
                return code
            self.native.poll(_ROOM_MS)
        return 0

    def explain(self, code: int, text: str, what: str) -> StreamtrainError:
        """Our error for one of librdkafka's, with what its threads have said meanwhile."""
        self.hear()
        return explain(code, text, what, self._bootstrap, self.heard)


class KafkaProducer(_Producer[_native.KafkaProducer]):
    """One that is not transactional."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        super().__init__(_native.KafkaProducer, settings)

    @classmethod
    def open(cls, purpose: Purpose, kafka: Mapping[str, object]) -> Self:
        """One for `purpose`, with the user's settings."""
        return cls(client_settings(purpose, kafka, {}))


class TransactionalProducer(_Producer[_native.KafkaTransactionalProducer]):
    """Whoever makes transactions makes them by its rules; begin with `native.prepare`."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        super().__init__(_native.KafkaTransactionalProducer, settings)

    @classmethod
    def open(cls, purpose: Purpose, kafka: Mapping[str, object], transactional_id: str) -> Self:
        """One for `purpose`, with the user's settings."""
        return cls(client_settings(purpose, kafka, {"transactional.id": transactional_id}))
