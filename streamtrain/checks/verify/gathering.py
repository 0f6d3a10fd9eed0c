"""Gathers a job's topics from Kafka for a verification: bounds at once, messages when they are asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from streamtrain.checks.verify.topics import KEYS, ReadTopics
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin, TopicState
from streamtrain.kafka.clients import KafkaConsumer, Message
from streamtrain.kafka.reader import read
from streamtrain.kafka.settings import Purpose
from streamtrain.record_sources.given_files import GivenFiles
from streamtrain.record_sources.source_kind import Topic

_REPORT_EVERY = 1000  # messages
OnRead = Callable[[str, int], None]  # gets the name of the topic that is read, and how many messages of it


def _nobody(topic: str, messages: int) -> None:
    """Hears nothing."""


@dataclass(frozen=True)
class _Partition:
    consumer: KafkaConsumer
    topic: str
    number: int
    low: int
    end: int
    on_read: OnRead

    def read(self, begin: int, end: int) -> Iterator[Message]:
        found = read(self.consumer, self.topic, self.number, max(begin, self.low), min(end, self.end))
        count = 0
        for message in found:
            yield message
            count += 1
            if count == _REPORT_EVERY:
                self.on_read(self.topic, count)
                count = 0
        self.on_read(self.topic, count)


@contextmanager
def read_topics(job: Job, files: GivenFiles | None = None, on_read: OnRead = _nobody) -> Iterator[ReadTopics]:
    """The job's topics, for as long as the context lasts. Raises KafkaUnreachable when no broker answers; as messages
    are read what `on_read` raises."""
    names = {key: str(job.topic(key).name) for key in KEYS}
    admin = Admin(job.kafka.bootstrap, job.kafka_admin())
    states = admin.describe(list(names.values()))
    with ExitStack() as stack:
        looked_ms = time.time_ns() // 1_000_000
        control = states[names["control"]]
        control_end = 0 if control is None else admin.last_stable(control.name, control.partitions)[0]
        found = {key: _topic(stack, job.kafka_consumer(), admin, states[name], on_read) for key, name in names.items()}
        yield ReadTopics(
            job=job.name,
            control_end=control_end,
            looked_ms=looked_ms,
            files=files,
            exactly_once=job.predict.delivery == "exactly_once",
            **found,
        )


def _topic(
    stack: ExitStack, kafka: Mapping[str, str], admin: Admin, state: TopicState | None, on_read: OnRead
) -> Topic | None:
    spans = None if state is None else admin.spans(state.name)
    if state is None or spans is None:
        return None
    consumer = stack.enter_context(KafkaConsumer.open(Purpose.READ, kafka))
    partitions = [
        _Partition(consumer, state.name, number, low, max(low, end), on_read)
        for number, (low, end) in enumerate(spans)
    ]
    return Topic(state.name, state.topic_id, partitions, state.compacted)
