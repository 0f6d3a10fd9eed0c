"""A program that writes or follows while Kafka is away is not flooded: librdkafka's repeats are held back."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import Producer

from streamtrain.clients.live_model import LiveModel
from streamtrain.errors import KafkaUnreachable
from streamtrain.log import librdkafka_logger

SAID = 40  # by librdkafka
LINES = 12  # each wording once in ten seconds, and what is said by ourselves
AWAY = "127.0.0.1:9"
QUICK = {"reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 5}


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_what_a_writers_library_says(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    logger = librdkafka_logger()
    monkeypatch.setattr(logger, "filters", [lambda record: said.append(record) is None, *logger.filters])
    with caplog.at_level(logging.INFO):
        producer = Producer({"bootstrap.servers": AWAY, "enable.idempotence": True, **QUICK}, logger=logger)
        while len(said) < SAID:
            producer.poll(0.1)
    lines = warned(caplog)
    assert 1 <= len(lines) <= LINES, lines


def test_a_follower(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), LiveModel("job", AWAY, kafka=QUICK) as model, pytest.raises(KafkaUnreachable):
        model.wait_ready(5)
    lines = warned(caplog)
    assert 1 <= len(lines) <= LINES, lines
