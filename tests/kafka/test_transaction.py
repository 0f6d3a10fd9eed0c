"""The trainer's transactions on a real Kafka: what of a batch is committed."""

from __future__ import annotations

from typing import Any

import pytest

from streamtrain.errors import UserMistake
from streamtrain.kafka.admin import Admin, job_topics
from streamtrain.kafka.consumer import KafkaConsumer, ingest_config
from streamtrain.kafka.reading import read
from streamtrain.kafka.transaction import Batch, Transactions
from streamtrain.processes._job_topics import JobTopics
from streamtrain.topics._topic import Message


def refuse() -> None:
    raise UserMistake("the topic was made again")


def test_what_its_check_refuses_is_not_committed_and_holds_nobody_up(kafka: Any) -> None:
    job = kafka.fresh_name("refused")
    admin, wishes = Admin(kafka.bootstrap), job_topics(job)
    admin.ensure(wishes)
    where = {"bootstrap.servers": kafka.bootstrap}
    topics = JobTopics(job, where, {wish.key: wish.name for wish in wishes}, admin)
    transactions = Transactions(where, job, topics)
    transactions.open()
    producer = transactions._producer
    messages = [(f"{job}.rounds", Message(b"key", b"value"))]
    with pytest.raises(UserMistake, match="made again"):
        transactions.publish(Batch(messages, "refused", check=refuse))
    offset = transactions.publish(Batch(messages, "good"))
    assert transactions._producer is producer  # nothing was left open that another had to end
    with KafkaConsumer(ingest_config(where)) as consumer:
        assert [message.offset for message in read(consumer, f"{job}.rounds", 0, 0, offset + 1)] == [offset]
