"""The demo's traffic as other programs would make it: flights and requests onto Kafka, and the predictor's answers."""

from __future__ import annotations

import threading
import time
from collections import deque
from math import inf, nan
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.clients.predictions import read_predictions
from streamtrain.clients.writer import RecordWriter
from streamtrain.demo.flights import FEATURES, RECORD, Columns, damaged_rows, record_json
from streamtrain.errors import KafkaUnreachable
from streamtrain.job import Job
from streamtrain.kafka.clients import KafkaProducer
from streamtrain.kafka.settings import Purpose

Document = dict[str, Any]
BLOCK_S = 0.05  # between two blocks of a paced stream
MAX_BLOCK_ROWS = 4_096
ROWS_PER_REQUEST = 50
ROW_HEADER, SENT_HEADER = "row", "sent-ms"  # of a request, and so of its answer
RATE_S = 3.0  # the rate of answers is over so long
NEWEST = 1_000  # answers, of which the percentiles are
FLUSH_MS = 60_000


class Traffic:
    """Counts, which only go up, beside the job's status. `send` and `read` run in threads.

    `rate`: rows a second; 0: as fast as it goes.
    """

    def __init__(self, job: Job, flights: Columns, rate: float) -> None:
        self.job, self.flights, self.rate, self.rows = job, flights, rate, len(flights["late"])
        self.sent = self.requests = self.answers = self.errors = 0
        self.newest: tuple[int, float] | None = None  # answer: its row, and how likely that is late
        self.stopping = threading.Event()
        self.status: Document = {}  # of JobStatus
        self.began_s = time.monotonic()
        self.streamed_s = 0.0  # when a snapshot had seen all rows
        self.first_trained_s: float | None = None  # when a snapshot had learned some
        self._delays: deque[tuple[float, float]] = deque(maxlen=10 * NEWEST)  # when an answer was read, and its delay

    def send(self) -> None:
        """Sends each flight as a record, and asks about some before they depart. Returns when all are delivered."""
        block_rows = max(1, min(MAX_BLOCK_ROWS, round(self.rate * BLOCK_S))) if self.rate else MAX_BLOCK_ROWS
        damages, self.began_s = damaged_rows(self.rows), time.monotonic()
        producer = KafkaProducer.open(Purpose.STREAM, self.job.kafka_producer())  # of what RecordWriter refuses
        with RecordWriter(self.job, pack=1) as records, RecordWriter(self.job, "requests") as requests, producer:
            for first in range(0, self.rows, block_rows):
                rows = range(first, min(first + block_rows, self.rows))
                for row in rows:
                    if row % ROWS_PER_REQUEST == ROWS_PER_REQUEST - 1:
                        self._ask(requests, row)
                    if row in damages:
                        code = producer.produce(records.topic, damages[row](record_json(self.flights, row)))
                        if code:
                            raise KafkaUnreachable(f"topic {records.topic}: {_native.kafka_error_text(code)}")
                good = [row for row in rows if row not in damages]
                records.write({name: self.flights[name][good] for name in RECORD})
                self.sent = rows.stop
                ahead_s = self.sent / self.rate - self.seconds if self.rate else 0.0
                if self.stopping.wait(min(max(0.0, ahead_s), threading.TIMEOUT_MAX)):
                    break
            producer.native.flush(FLUSH_MS)

    def _ask(self, requests: RecordWriter, row: int) -> None:
        flight = {name: cells[row] for name, cells in self.flights.items()}
        headers = {ROW_HEADER: str(row), SENT_HEADER: str(time.time_ns() // 1_000_000)}
        key = f"{flight['carrier']}{flight['flight']}"
        requests.write({name: flight[name] for name in FEATURES}, key=key, headers=headers)
        self.requests += 1

    def read(self) -> None:
        """Reads the answers until it is stopped."""
        job, first_s, topic = self.job, inf, str(self.job.topic("predictions").name)
        for answer in read_predictions(
            job.name, job.kafka.bootstrap, job.kafka_consumer(), topic=topic, stop=self.stopping.is_set
        ):
            headers, now_s = dict(answer.headers), time.time()
            first_s, sent_s = min(first_s, now_s), int(headers.get(SENT_HEADER, 0)) / 1_000
            # requests from before the first answer waited for the first snapshot
            self._delays.append((now_s, max(0.0, now_s - sent_s) if sent_s >= first_s else nan))
            if answer.error is None and ROW_HEADER in headers and isinstance(answer.prediction, dict):
                self.newest = int(headers[ROW_HEADER]), float(answer.prediction["prediction"])
            self.errors += answer.error is not None
            self.answers += 1

    def see(self, status: Document) -> Traffic:
        """Takes the newest status of the job."""
        self.status, snapshot = status, status["snapshot"]
        if self.first_trained_s is None and snapshot and snapshot["rows_seen"]:
            self.first_trained_s = time.monotonic() - snapshot["age_s"]
        if not self.streamed_s and self.rows_read >= self.rows:
            self.streamed_s = self.seconds
        return self

    def is_answered(self, wait_s: float) -> bool:
        """Returns whether a snapshot has seen all rows, and all requests are answered or time is up."""
        waited_s = self.seconds - self.streamed_s
        return self.streamed_s > 0 and (self.answers >= self.requests or waited_s > wait_s)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began_s

    @property
    def rows_read(self) -> int:
        """Returns the rows up to the newest snapshot's positions: a flight is a record."""
        return sum(self.status.get("positions", ()))

    def delay_s(self, percent: float) -> float | None:
        """Returns a percentile of the seconds from the sending of a request to the reading of its answer."""
        delays = [delay_s for _, delay_s in list(self._delays)[-NEWEST:] if delay_s == delay_s]
        return float(np.percentile(delays, percent)) if delays else None

    def to_dict(self) -> Document:
        """Returns the figures of the moment."""
        status, metrics = self.status, self.status.get("metrics", {})
        snapshot, row_age_s = status["snapshot"] or {}, status["newest_row_age_s"]
        age_s, since_s = snapshot.get("age_s", 0.0), time.time() - RATE_S
        return {
            "seconds": round(self.seconds, 2), "rows_sent": self.sent, "rows_read": self.rows_read,
            "rows_trained": snapshot.get("rows_seen", 0), "rows_per_s": round(status["rows_per_second"] or 0.0, 1),
            "lag": max(0, self.sent - self.rows_read), "version": snapshot.get("version", 0), "age_s": age_s,
            "event_age_s": None if row_age_s is None else max(0.0, row_age_s - age_s),
            "total": metrics.get("total") or {}, "window": metrics.get("window") or {},
            "filtered": snapshot["counts"]["filtered"] if snapshot else 0, "dead_letters": status["dead_letters"],
            "requests": self.requests, "answers": self.answers,
            "answers_per_s": round(sum(read_s >= since_s for read_s, _ in list(self._delays)) / RATE_S, 1),
            "answer_delay_p50_s": self.delay_s(50), "answer_delay_p99_s": self.delay_s(99),
        }  # fmt: skip
