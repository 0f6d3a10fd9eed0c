"""A GPU, where there is one."""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain.compute import backends
from streamtrain.doctor.finding import Finding
from streamtrain.job.kafka_settings import KafkaSettings

HELP = "which backends can be used"
ORDER = 50


def look(kafka: KafkaSettings | None) -> Iterator[Finding]:
    for name in backends.priority_names():
        reason = backends.get(name).answers()
        yield Finding(f"backend {name}", "can be used" if reason is None else f"cannot be used: {reason}")
    yield Finding("chosen", backends.choose())
