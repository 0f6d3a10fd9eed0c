"""The predictor's answers as any other program would read them: how many, how soon, and what they say.

A thread of the demo.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from math import inf

import numpy as np

from streamtrain.clients.predictions import read_predictions
from streamtrain.demo.flights import Flights
from streamtrain.demo.stream import ROW_HEADER, SENT_HEADER
from streamtrain.job import Job
from streamtrain.topics.predictions import Answer

DELAYS = 1_000  # newest ones, of which the percentiles are


@dataclass(frozen=True)
class Told:
    """One answer: which flight, how likely it is late, what came true (None: never arrived), and by which snapshot."""

    flight: str
    probability: float
    late: bool | None
    version: int


class Answers(threading.Thread):
    """Counts only go up."""

    def __init__(self, job: Job, flights: Flights) -> None:
        super().__init__(name="answers", daemon=True)
        self.count = 0
        self.errors = 0
        self._newest: tuple[int, float, int] | None = None  # row, probability, version
        self._job = job
        self._flights = flights
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._first_s = inf  # the first answer was read
        self._delays_s: deque[float] = deque(maxlen=DELAYS)

    def stop(self) -> None:
        self._stopping.set()

    def check(self) -> None:
        """Raises what ended the thread."""
        if self._failure is not None:
            raise self._failure

    def delay_s(self, percent: float) -> float | None:
        """From the request's sending to its answer's reading, of the newest answers.

        Without the requests that were there before the first answer: those waited for the first snapshot.
        """
        delays = list(self._delays_s)
        return float(np.percentile(delays, percent)) if delays else None

    def newest(self) -> Told | None:
        """The last good answer."""
        if self._newest is None:
            return None
        row, probability, version = self._newest
        late = float(self._flights.columns["late"][row])
        return Told(self._flights.told(row), probability, None if np.isnan(late) else late > 0, version)

    def run(self) -> None:
        job = self._job
        topic = str(job.topic("predictions").name)
        try:
            for answer in read_predictions(
                job.name, job.kafka.bootstrap, job.kafka_consumer(), topic=topic, stop=self._stopping.is_set
            ):
                self._take(answer)
        except Exception as failure:
            self._failure = failure

    def _take(self, answer: Answer) -> None:
        headers = dict(answer.headers)
        if SENT_HEADER in headers:
            now_s, sent_s = time.time(), int(headers[SENT_HEADER]) / 1_000
            self._first_s = min(self._first_s, now_s)
            if sent_s >= self._first_s:
                self._delays_s.append(max(0.0, now_s - sent_s))
        if answer.error is not None:
            self.errors += 1
        elif ROW_HEADER in headers and answer.version is not None and isinstance(answer.prediction, dict):
            self._newest = int(headers[ROW_HEADER]), float(answer.prediction["prediction"]), answer.version
        self.count += 1
