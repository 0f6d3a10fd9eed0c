"""read_predictions on a real broker."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from confluent_kafka import Producer

from streamtrain.clients.predictions import read_predictions
from streamtrain.errors import UserMistake
from streamtrain.kafka.admin import Admin
from streamtrain.topics.predictions import RowError
from streamtrain.topics.topic import Message, job_topics


def send(kafka: Any, topic: str, messages: list[Message]) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for message in messages:
        producer.produce(topic, message.value, message.key, headers=list(message.headers), partition=0)  # type: ignore[arg-type]
    assert producer.flush(10) == 0


def test_answers_are_read_as_they_were_written(kafka: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job = kafka.fresh_name("answers")
    with pytest.raises(UserMistake, match="found none"):
        next(read_predictions(job, kafka.bootstrap))
    Admin(kafka.bootstrap).ensure(wish for wish in job_topics(job) if wish.key == "predictions")
    assert list(read_predictions(job, kafka.bootstrap, until_end=True)) == []
    ours = (("streamtrain-version", b"3"), ("streamtrain-digest", b"ab" * 32), ("streamtrain-offset", b"41"))
    good = Message(b"a", b'{"prediction":0.5}', (("id", b"7"), *ours))
    error = RowError("$.x", "expected number", "flights.requests[0]@7")
    bad = Message(b"b", json.dumps({"error": vars(error)}).encode(), (*ours, ("streamtrain-error", b"$.x: expected")))
    send(kafka, f"{job}.predictions", [good, bad, Message(b"c", b"no json"), good])
    answers = list(read_predictions(job, kafka.bootstrap, until_end=True))
    assert [(answer.key, answer.prediction, answer.error) for answer in answers] == [
        (b"a", {"prediction": 0.5}, None),
        (b"b", None, error),
        (b"a", {"prediction": 0.5}, None),
    ]
    assert (answers[0].version, answers[0].digest, answers[0].headers) == (3, "ab" * 32, (("id", b"7"),))
    assert (answers[0].offset, answers[0].partition) == (41, None)
    with monkeypatch.context() as earlier:  # what is written after the call is not read
        earlier.setattr(Admin, "last_stable", lambda *_: [2, 0, 0, 0])
        assert len(list(read_predictions(job, kafka.bootstrap, until_end=True))) == 2
    following = read_predictions(job, kafka.bootstrap)
    assert len(list(itertools.islice(following, 3))) == 3
    send(kafka, f"{job}.predictions", [good])
    assert next(following).key == b"a"
