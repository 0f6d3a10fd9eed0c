"""A program that writes or follows while Kafka is away is not flooded: librdkafka's repeats are held back."""

from __future__ import annotations

import contextlib
import logging
import threading

import pytest

from streamtrain.clients.live_model import LiveModel
from streamtrain.clients.writer import RecordWriter
from streamtrain.errors import KafkaUnreachable, StreamtrainError
from streamtrain.job import Job
from streamtrain.log import librdkafka_logger

SAID = 40  # by librdkafka
LINES = 12  # each wording once in ten seconds, and what is said by ourselves
AWAY = "127.0.0.1:9"
QUICK = {"reconnect.backoff.ms": "5", "reconnect.backoff.max.ms": "5"}


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_writer(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    said = threading.Semaphore(0)

    def count(record: logging.LogRecord) -> bool:
        said.release()
        return True

    logger = librdkafka_logger()
    monkeypatch.setattr(logger, "filters", [count, *logger.filters])
    sets = [f"kafka.producer.{name}={value}" for name, value in QUICK.items()]
    job = Job.parse('name = "away"\n[columns]\nx = {}\ny = { role = "label" }\n', bootstrap=AWAY, sets=sets)
    with caplog.at_level(logging.INFO):
        writer = RecordWriter(job)
        thread = threading.Thread(target=write, args=(writer,))
        thread.start()
        for _ in range(SAID):
            assert said.acquire(timeout=120)
        with contextlib.suppress(StreamtrainError):
            writer.close(0.1)
        thread.join()
    lines = warned(caplog)
    assert 1 <= len(lines) <= LINES, lines


def write(writer: RecordWriter) -> None:
    with contextlib.suppress(StreamtrainError):
        writer.write({"x": 1, "y": 1})


def test_a_follower(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), LiveModel("job", AWAY, kafka=QUICK) as model, pytest.raises(KafkaUnreachable):
        model.wait_ready(5)
    lines = warned(caplog)
    assert 1 <= len(lines) <= LINES, lines
