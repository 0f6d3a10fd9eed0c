"""Records on their way to one topic: librdkafka's producer, what it could not deliver, and the reports of delivery."""

from __future__ import annotations

import _thread
import logging
import os
import signal
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streamtrain.clients.forks import keep_for_ever
from streamtrain.columns.record_encoding import Record
from streamtrain.errors import KafkaUnreachable, StreamtrainError, UserMistake
from streamtrain.kafka.error_codes import explain
from streamtrain.log import librdkafka_logger

log = logging.getLogger("streamtrain.writer")

Headers = Sequence[tuple[str, bytes | str | None]]
OnDelivery = Callable[[KafkaError | None, Message], object]

_POLL_S = 0.1


class Outgoing(NamedTuple):
    """A record the writer has accepted and librdkafka has not."""

    record: Record
    headers: Headers | None
    timestamp_ms: int | None
    on_delivery: OnDelivery | None


class Outbox:
    """Sends what it is given in order, and keeps what librdkafka has no room for. One thread at a time may put.

    Without a callback for deliveries only failures are reported; with one a thread serves the reports.
    """

    def __init__(
        self, settings: Mapping[str, Any], topic: str, bootstrap: str, on_delivery: OnDelivery | None
    ) -> None:
        self.topic, self.bootstrap = topic, bootstrap
        self.waiting: deque[Outgoing] = deque()
        self.shut = False  # for ever
        self.refusing = False  # shut, or a failure is to be raised first
        self._settings = dict(settings)
        self._on_delivery = on_delivery
        self._failed = 0
        self._first: KafkaError | None = None
        self._server: threading.Thread | None = None
        self._ended = threading.Event()
        self._open()
        _outboxes.add(self)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # which would lose what librdkafka has not sent
            with suppress(ValueError):  # a thread other than the main one can set no handler
                signal.signal(signal.SIGTERM, _exit)

    def _open(self) -> None:
        failures_only = self._on_delivery is None
        own = {"on_delivery": self._reported, "delivery.report.only.error": failures_only}
        try:
            self._producer = Producer({**self._settings, **own}, logger=librdkafka_logger())
        except KafkaException as error:
            raise UserMistake(f"[kafka] {error.args[0].str()}") from None
        self.produce = self._producer.produce
        if not failures_only:
            self._server = threading.Thread(target=self._serve, name=f"streamtrain-writer-{self.topic}", daemon=True)
            self._server.start()

    @property
    def is_closing(self) -> bool:
        """Returns whether its writer waits for delivery and takes nothing more."""
        return self.shut and not self._ended.is_set()

    def __len__(self) -> int:
        """Records accepted and not known to be delivered."""
        return len(self.waiting) + len(self._producer)

    def put(self, outgoing: Outgoing) -> None:
        """Accepts a record: sent now, or as soon as there is room."""
        self.waiting.append(outgoing)

    def send(self, timeout_s: float) -> None:
        """Hands all that waits to librdkafka; KafkaUnreachable, and what is left stays, where it has no room for so
        long."""
        until = None
        while self.waiting:
            record, headers, timestamp_ms, on_delivery = self.waiting[0]
            more: dict[str, Any] = {}
            if headers is not None:
                more["headers"] = list(headers)
            if timestamp_ms is not None:
                more["timestamp"] = timestamp_ms
            if on_delivery is not None:
                more["on_delivery"] = _guarded(on_delivery, self._reported)
            try:
                self.produce(self.topic, record.value, record.own.key, **more)
            except BufferError:  # librdkafka's queue is full: let deliveries make room
                until = time.monotonic() + timeout_s if until is None else until
                self._make_room()
                if time.monotonic() > until:
                    raise KafkaUnreachable(
                        f"{self.topic}: Kafka at {self.bootstrap} has taken no record for {timeout_s:g} s; "
                        f"{len(self)} are kept, and flush() tries again"
                    ) from None
                continue
            except KafkaException as error:
                self.waiting.popleft()
                raise self._explained(error.args[0], "a record was not taken") from None
            except Exception as error:  # what no record can be: the others are not held up by it
                self.waiting.popleft()
                raise UserMistake(f"{self.topic}: a record was not taken: {error}") from None
            self.waiting.popleft()
        self.serve()

    def serve(self) -> None:
        """Looks for failures, where no thread does."""
        if self._server is None:
            self._producer.poll(0)

    def flush(self, timeout_s: float) -> None:
        """Waits until all that was sent is delivered or has failed; KafkaUnreachable where that takes longer."""
        producer = vars(self).get("_producer")  # none where another thread has closed, which waits and raises itself
        left = 0
        if producer is not None and producer.flush(timeout_s):
            producer.poll(0)  # librdkafka counts its log lines too, until they are served
            left = len(producer)
        self.raise_failure()
        if left := left + len(self.waiting):
            raise KafkaUnreachable(
                f"{left} records to {self.topic} not taken by Kafka at {self.bootstrap} in {timeout_s:g} s"
            )

    def raise_failure(self) -> None:
        """Raises what could not be delivered since the last call."""
        if self._first is None:
            return
        error, count = self._first, self._failed
        self._first, self._failed, self.refusing = None, 0, self.shut
        what = "a record was" if count == 1 else f"{count} records were"
        raise self._explained(error, f"{what} not delivered")

    def _explained(self, error: KafkaError, what: str) -> StreamtrainError:
        return explain(error.code(), error.str(), f"{self.topic}: {what}", self.bootstrap)

    def report_all(self, timeout_s: float) -> None:
        """From now on deliveries are reported, not only failures; flushes first, for the order."""
        if self._server is None:
            self.send(timeout_s)
            self.flush(timeout_s)
            self._on_delivery = _nobody
            self._open()

    def close(self) -> None:
        """Ends the thread of the reports and librdkafka's, with their sockets: nothing is sent afterwards."""
        self._ended.set()
        _go_on_ending()
        if self._server is threading.current_thread():
            return  # its producer still reports: it ends when the garbage collector finds it
        if self._server is not None:
            self._server.join()
        for own in ("produce", "_producer"):  # which has methods of this object
            vars(self).pop(own, None)

    def leave_to_parent(self) -> None:
        """In a forked child: the producer must never be freed, it would wait for threads that are not here."""
        self._server = None
        self._ended = threading.Event()  # the parent's may be locked
        self._ended.set()
        self.shut = self.refusing = True
        if "_producer" in vars(self):
            keep_for_ever(self._producer)

    def _make_room(self) -> None:
        if self._server is None:
            self._producer.poll(_POLL_S)
        else:
            self._ended.wait(_POLL_S)

    def _serve(self) -> None:
        while not self._ended.is_set():
            self._producer.poll(_POLL_S)

    def _reported(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed += 1
            self._first = self._first or error
            self.refusing = True
        if self._on_delivery is not None:
            _call(self._on_delivery, error, message)


_outboxes: weakref.WeakSet[Outbox] = weakref.WeakSet()
_delayed: list[signal.Signals] = []  # the signal that came while a writer was closing


def _exit(number: int, frame: object) -> None:
    """Handles SIGTERM: ends the program as sys.exit does where records may be unsent, else as the signal does.

    A writer that is closing ends first. A second signal ends the program at once.
    """
    if not _delayed and any(outbox.is_closing for outbox in _outboxes):
        _delayed.append(signal.Signals(number))
        return
    signal.signal(number, signal.SIG_DFL)
    if not _delayed and any(not outbox.shut for outbox in _outboxes):
        raise SystemExit(128 + number)
    os.kill(os.getpid(), number)


def _go_on_ending() -> None:
    """Handles a delayed signal in the main thread, as soon as no writer is closing."""
    if _delayed and not any(outbox.is_closing for outbox in _outboxes):
        _thread.interrupt_main(_delayed.pop())


def _nobody(error: KafkaError | None, message: Message) -> None:
    """Ignores a report, where only some writes ask for one."""


def _guarded(own: OnDelivery, all: OnDelivery) -> OnDelivery:
    def both(error: KafkaError | None, message: Message) -> None:
        all(error, message)
        _call(own, error, message)

    return both


def _call(on_delivery: OnDelivery, error: KafkaError | None, message: Message) -> None:
    """A callback that raises must not end the thread it is called from."""
    try:
        on_delivery(error, message)
    except Exception:
        log.exception("on_delivery of %s", message.topic())
