"""The flights onto Kafka: each a record, in order of scheduled departure, and a few asked about before they depart.

A thread of the demo. Paced in blocks, so that it costs little.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streamtrain import _native
from streamtrain.demo.flights import Flights
from streamtrain.errors import KafkaUnreachable
from streamtrain.job import Job
from streamtrain.kafka.clients import KafkaProducer
from streamtrain.kafka.settings import Purpose

log = logging.getLogger(__name__)
BLOCK_S = 0.05  # between two blocks of a paced stream
BLOCK_ROWS = 4_096  # of one that is not
ROWS_PER_REQUEST = 50
ROW_HEADER, SENT_HEADER = "row", "sent-ms"  # echoed with the answer
FLUSH_MS = 60_000
Headers = list[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Pace:
    """`rate` rows a second; 0: as fast as it goes."""

    rate: float

    @property
    def block_rows(self) -> int:
        return BLOCK_ROWS if self.rate == 0 else max(1, min(BLOCK_ROWS, round(self.rate * BLOCK_S)))

    def due_s(self, rows: int) -> float:
        """When so many rows may have been sent, from the start on."""
        return rows / self.rate if self.rate else 0.0


class Stream(threading.Thread):
    """`rows_sent` and `requests_sent` go up while it runs; `ended` is set when all that was sent is delivered."""

    def __init__(self, job: Job, flights: Flights, pace: Pace) -> None:
        super().__init__(name="flights", daemon=True)
        self.rows = len(flights)
        self.rows_sent = 0
        self.requests_sent = 0
        self.ended = threading.Event()
        self._flights = flights
        self._pace = pace
        self._topics = str(job.topic("records").name), str(job.topic("requests").name)
        self._kafka = job.kafka.bootstrap
        self._settings = job.kafka_producer()
        self._stopping = threading.Event()
        self._failure: Exception | None = None

    @property
    def date(self) -> str:
        """Returns the date of the newest flight sent."""
        return self._flights.date(max(0, self.rows_sent - 1))

    def stop(self) -> None:
        """Ends it after the block it is at."""
        self._stopping.set()

    def check(self) -> None:
        """Raises what ended the thread."""
        if self._failure is not None:
            raise self._failure

    def run(self) -> None:
        try:
            with KafkaProducer.open(Purpose.STREAM, self._settings) as producer:
                self._producer = producer
                self._blocks()
                if producer.native.flush(FLUSH_MS):
                    raise KafkaUnreachable(f"{self._topics[0]}: Kafka at {self._kafka} takes no records")
                self._check_delivered()
        except Exception as failure:
            self._failure = failure
        self.ended.set()

    def _blocks(self) -> None:
        started_s = time.monotonic()
        for first in range(0, self.rows, self._pace.block_rows):
            last = min(first + self._pace.block_rows, self.rows)
            self._ask(first, last)
            self._send(self._topics[0], self._flights.records(first, last))
            self.rows_sent = last
            pause_s = started_s + self._pace.due_s(last) - time.monotonic()
            if self._stopping.wait(max(0.0, pause_s)):
                return

    def _ask(self, first: int, until: int) -> None:
        """Requests for some flights of a block, before their records are there to be learned."""
        last = first + until // ROWS_PER_REQUEST - self.requests_sent
        now = str(time.time_ns() // 1_000_000).encode()
        headers: list[Headers] = [
            [(ROW_HEADER, str(row).encode()), (SENT_HEADER, now)] for row in range(first, last)
        ]
        self._send(self._topics[1], self._flights.requests(first, last), headers)
        self.requests_sent += len(headers)

    def _send(
        self, topic: str, messages: Iterable[tuple[bytes, bytes]], headers: Sequence[Headers] | None = None
    ) -> None:
        for index, (key, value) in enumerate(messages):
            code = self._producer.produce(topic, value, key, headers=headers[index] if headers else ())
            if code:
                raise KafkaUnreachable(f"topic {topic}: {_native.kafka_error_text(code)}")
        self._producer.native.poll(0)
        self._check_delivered()

    def _check_delivered(self) -> None:
        failed = [event.text for event in self._producer.events() if event.facility == "DELIVERY"]
        if failed:
            raise KafkaUnreachable(f"a record was not delivered to Kafka at {self._kafka}: {failed[0]}")
