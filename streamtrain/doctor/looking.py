"""Looks at everything, one thing after the other."""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain.doctor import REGISTRY
from streamtrain.doctor.finding import Finding
from streamtrain.job.kafka_settings import KafkaSettings


def looked(kafka: KafkaSettings | None) -> Iterator[tuple[str, list[Finding]]]:
    """The findings of each look, in order, as soon as they are there. One that fails is a finding."""
    looks = sorted((REGISTRY.get(name) for name in REGISTRY.names()), key=lambda look: look.ORDER)
    for look in looks:
        name = look.__name__.rpartition(".")[2]
        try:
            yield name, list(look.look(kafka))
        except Exception as error:  # a doctor that falls ill helps nobody
            yield name, [Finding(name, f"could not be looked at: {type(error).__name__}: {error}", "warning")]
