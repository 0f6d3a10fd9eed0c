"""One job's requests and predictions topics on a real Kafka, with what asks and reads, and a predictor in a thread."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
from waiting import wait_for

from streamtrain._native import KafkaCode
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer, Message
from streamtrain.run.roles import predictor
from streamtrain.topics.predictions import Answer, decode
from streamtrain.topics.topic import TopicWish

PARTITIONS = 3


class Bench:
    """One job's requests and predictions topics, with a producer of requests and a reader of answers."""

    def __init__(self, bootstrap: str, job: str, partitions: int = PARTITIONS) -> None:
        self.job, self.bootstrap = job, bootstrap
        self.requests, self.predictions = f"{job}.requests", f"{job}.predictions"
        Admin(bootstrap).ensure(TopicWish(key, f"{job}.{key}", partitions) for key in ("requests", "predictions"))
        self.producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})

    def config(self, delivery: str = "exactly_once", **changes: Any) -> predictor.Config:
        common = {"bootstrap.servers": self.bootstrap}
        fast = {**common, "session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}
        settings: dict[str, Any] = {
            "job": self.job, "format": {"name": "json"}, "registry": {}, "requests": self.requests,
            "predictions": self.predictions, "kafka_consumer": fast, "kafka_producer": common, "delivery": delivery,
        }  # fmt: skip
        return predictor.Config(**{**settings, **changes})

    def ask(self, value: Any, key: str | None = None, headers: Any = (), partition: int = 0) -> None:
        raw = value if isinstance(value, bytes | None) else json.dumps(value).encode()
        self.producer.produce(self.requests, raw, key, partition=partition, headers=list(headers))
        self.producer.poll(0)

    def flush(self) -> None:
        assert self.producer.flush(20) == 0

    def messages(self) -> list[Message]:
        """Every committed answer there is now."""
        settings = {"bootstrap.servers": self.bootstrap, "group.id": "reader", "enable.partition.eof": True}
        settings["fetch.wait.max.ms"] = 10  # of an empty partition the end is heard after that
        found: list[Message] = []
        with KafkaConsumer({**settings, "isolation.level": "read_committed"}) as consumer:
            consumer.assign(self.predictions, [(p, 0) for p in range(PARTITIONS)])
            wait_for(
                lambda: (
                    found.extend(consumer.consume(10_000, 0.1))
                    or sum(m.error == KafkaCode.PARTITION_EOF for m in found) >= PARTITIONS
                )
            )
        return [message for message in found if not message.error]

    def answers(self) -> dict[str, Answer]:
        """The answers by key."""
        found = [decode(m.key, m.value, [(n, v or b"") for n, v in m.headers]) for m in self.messages()]
        return {(answer.key or b"").decode(): answer for answer in found}

    def counts(self) -> Counter[bytes | None]:
        return Counter(message.key for message in self.messages())


@contextmanager
def running(config: predictor.Config) -> Iterator[dict[str, int]]:
    """A predictor in a thread; gives its counters, kept up to date. Its error is raised at the end."""
    stop = threading.Event()
    counters: dict[str, int] = {"version": 0, "requests": 0}
    failures: list[BaseException] = []

    def work() -> None:
        try:
            counters.update(predictor.answer(config, stop, counters.update))
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=work, name="predictor")
    thread.start()
    try:
        yield counters
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()
    if failures:
        raise failures[0]
