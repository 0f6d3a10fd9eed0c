"""A Kafka: whether it answers, how soon, and what is there."""

from __future__ import annotations

import time
from collections.abc import Iterator

from streamtrain.doctor.finding import Finding
from streamtrain.errors import StreamtrainError
from streamtrain.job.kafka_settings import KafkaSettings
from streamtrain.kafka.admin import Admin

HELP = "a Kafka: whether it answers, how soon, its brokers and topics"
ORDER = 60
SLOW_S = 0.25


def look(kafka: KafkaSettings | None) -> Iterator[Finding]:
    if kafka is None:
        yield Finding("kafka", "not asked: give a job file or --bootstrap")
        return
    admin = Admin(kafka.bootstrap, {**kafka.common, **kafka.consumer})
    try:
        admin.broker_count()
    except StreamtrainError as error:
        yield Finding("kafka", str(error), "wrong", "start it, or mend the address or [kafka]")
        return
    begun_s = time.monotonic()
    count = admin.broker_count()
    took_s = time.monotonic() - begun_s
    found = f"{kafka.bootstrap} answers within {1000 * took_s:.1f} ms, {count} broker{'s' * (count != 1)}"
    slow = took_s > SLOW_S
    yield Finding("kafka", found, "warning" if slow else "ok", "every publication waits for it" if slow else "")
    yield Finding("topics", f"{len(admin.names()):,} are visible")
