"""The lag of a group, seen from outside."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from streamtrain.errors import KafkaUnreachable
from streamtrain.kafka import renewing
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.lag import GroupLag
from streamtrain.topics.topic import TopicWish


def test_what_a_group_has_not_passed(kafka: Any) -> None:
    topic = kafka.fresh_name("lag")
    Admin(kafka.bootstrap).ensure([TopicWish("x", topic, 2)])
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for partition in (0, 0, 0, 1):
        producer.produce(topic, b"x", partition=partition)
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": topic})
    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    consumer.close()
    assert GroupLag({"bootstrap.servers": kafka.bootstrap}, topic, topic, 60).ask() == {0: 1, 1: 1}


def test_a_client_that_is_silent_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewing, "_DEAF_S", 0.0)
    lag = GroupLag({"bootstrap.servers": "127.0.0.1:9"}, "group", "topic", 0.1)
    for _ in range(2):
        with pytest.raises(KafkaUnreachable):
            lag.ask()
    assert lag._clients.made == 2
