"""A program that follows a model while Kafka is away is not flooded: librdkafka's repeats are held back."""

from __future__ import annotations

import logging
import threading

import pytest

from streamtrain.clients.live_model import LiveModel
from streamtrain.log import librdkafka_logger

SAID = 40  # by librdkafka
LINES = 12  # each wording once in ten seconds, and what LiveModel says itself


def test_hundreds_of_lost_connections_are_a_few_lines(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = threading.Semaphore(0)

    def count(record: logging.LogRecord) -> bool:
        said.release()
        return True

    logger = librdkafka_logger()
    monkeypatch.setattr(logger, "filters", [count, *logger.filters])
    quick = {"reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 5}
    with caplog.at_level(logging.INFO), LiveModel("job", "127.0.0.1:9", kafka=quick):
        for _ in range(SAID):
            said.acquire()
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) <= LINES, lines
