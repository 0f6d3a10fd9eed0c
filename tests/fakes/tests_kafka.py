"""The Kafka that tests use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamtrain.broker import start_broker

ROOT = Path(__file__).resolve().parents[2]
COMPOSE_ADDRESS = "localhost:29092"
COMPOSE_PROJECT = "streamtrain-tests"


def kafka_home() -> Path | None:
    home = os.environ.get("KAFKA_HOME")
    return Path(home) if home else None


@contextmanager
def running_kafka() -> Iterator[str]:
    """The address of the first of these: the Kafka at STREAMTRAIN_TEST_BOOTSTRAP; that of docker-compose.yml where
    STREAMTRAIN_TEST_BROKER is `docker`; the embedded one, where it is `embedded` or not set."""
    given = os.environ.get("STREAMTRAIN_TEST_BOOTSTRAP")
    choice = os.environ.get("STREAMTRAIN_TEST_BROKER", "embedded")
    if given:
        yield given
    elif choice == "docker":
        with _in_docker():
            yield COMPOSE_ADDRESS
    elif choice == "embedded":
        with start_broker(kafka_home=kafka_home(), fast_start=True) as broker:
            yield broker.bootstrap
    else:
        raise pytest.UsageError(f"STREAMTRAIN_TEST_BROKER: expected docker or embedded, got {choice!r}")


@contextmanager
def _in_docker() -> Iterator[None]:
    """Kafka's own image, of the embedded version; testcontainers' KafkaContainer starts Confluent's alone.

    In a project of its own: what it made is removed at the end, a user's Kafka of the same file is left alone.
    """
    from testcontainers.compose import DockerCompose  # slow to import

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("COMPOSE_PROJECT_NAME", COMPOSE_PROJECT)
        with DockerCompose(ROOT, services=["kafka"], wait=True):
            yield
