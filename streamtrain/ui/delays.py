"""The delay from requests to predictions: timestamps of the newest predictions beside those of their requests.

A sample, read in a thread of its own from the two topics alone.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future

import numpy as np

from streamtrain.background import in_background
from streamtrain.errors import CheckFailed, StreamtrainError
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer, Message
from streamtrain.kafka.reader import read_all
from streamtrain.kafka.settings import Purpose
from streamtrain.topics.predictions import request_of

log = logging.getLogger("streamtrain.ui")

EVERY_S = 3.0
_NEWEST = 48  # offsets at the end of each partition of the predictions, and of the requests they answer
_MOST_PARTITIONS = 16
_MOST_BYTES = 4 << 20  # of requests that are read for it
Span = tuple[int, int]
Answered = Mapping[tuple[int, int], int]  # by partition and offset of the request: when its prediction came, Unix, ms


class Delays:
    """The prediction delays of one job; for one thread."""

    def __init__(self, job: Job, admin: Admin) -> None:
        self._job, self._admin = job, admin
        self._seen: Sequence[int] | None = None  # ends of the predictions' partitions
        self._sampled_s = time.monotonic()
        self._sample: Future[list[int]] | None = None

    def look(self, ends: Sequence[int]) -> dict[str, float]:
        """Figures of a sample that is over, each given once; begins another now and then. `ends`: the predictions'."""
        found = self._taken()
        seen = self._seen if self._seen is not None and len(self._seen) == len(ends) else ends
        self._seen = seen
        now_s = time.monotonic()
        if self._sample is None and ends != seen and now_s - self._sampled_s >= EVERY_S:
            new = {at: (max(begin, end - _NEWEST), end) for at, (begin, end) in enumerate(zip(seen, ends, strict=True))}
            newest = dict(sorted(new.items(), key=lambda each: each[1][0] - each[1][1])[:_MOST_PARTITIONS])
            self._sample = in_background(self._delays_ms, newest, name=f"ui-delays-{self._job.name}")
            self._seen, self._sampled_s = ends, now_s
        return found

    def _taken(self) -> dict[str, float]:
        if self._sample is None or not self._sample.done():
            return {}
        sample, self._sample = self._sample, None
        try:
            return figures(sample.result())
        except StreamtrainError as error:  # the next one may be better
            log.debug("delays of %s: %s", self._job.name, error)
            return {}

    def _delays_ms(self, spans: Mapping[int, Span]) -> list[int]:
        requests = str(self._job.topic("requests").name)
        with KafkaConsumer.open(Purpose.READ, self._job.kafka_consumer()) as consumer:
            answered = when(read_all(consumer, str(self._job.topic("predictions").name), spans))
            there = dict(enumerate(self._admin.spans(requests) or ()))
            size, found = 0, []
            for message in read_all(consumer, requests, around(answered, there)):
                if (size := size + len(message.value or b"")) > _MOST_BYTES:
                    break
                if (came_ms := answered.get((message.partition, message.offset))) is not None:
                    found.append(max(0, came_ms - message.timestamp_ms))
        return found


def when(predictions: Iterable[Message]) -> Answered:
    """Returns when each request got its prediction. Ignores messages that are not predictions of ours."""
    found = {}
    for message in predictions:
        try:
            place = request_of([(name, value or b"") for name, value in message.headers])
        except CheckFailed:
            continue
        if place is not None:
            found[place] = message.timestamp_ms
    return found


def around(answered: Answered, there: Mapping[int, Span]) -> dict[int, tuple[int, int | None]]:
    """Returns the span to read for the newest of these requests, by partition, within the offsets `there`."""
    offsets = defaultdict(list)
    for partition, offset in answered:
        low, end = there.get(partition, (0, 0))
        if low <= offset < end:
            offsets[partition].append(offset)
    return {
        partition: (max(min(own), max(own) + 1 - _NEWEST), max(own) + 1) for partition, own in sorted(offsets.items())
    }  # fmt: skip


def figures(delays_ms: Sequence[int]) -> dict[str, float]:
    """None of an empty sample."""
    if not delays_ms:
        return {}
    median, p99 = np.quantile(delays_ms, (0.5, 0.99)).tolist()
    return {"prediction_delay.median_ms": median, "prediction_delay.p99_ms": p99}
