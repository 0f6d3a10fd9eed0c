"""A job whose records are written to the tests' Kafka, and what its topics hold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamtrain import Job
from streamtrain.clients.topic_reader import read_messages
from streamtrain.kafka.admin import Admin

TEXT = """\
name = "{name}"
[kafka]
bootstrap.servers = "{bootstrap}"
[topics]
records.partitions = 2
[columns]
x = {{ missing = 0 }}
carrier = {{ kind = "category", buckets = 8, missing = "" }}
late = {{ role = "label" }}
{key}
"""
LOST = TEXT.format(name="x", bootstrap="127.0.0.1:1", key="")  # nobody answers there
SOON = "kafka.producer.message.timeout.ms=300"


def new_job(kafka: Any, key: str = "") -> Job:
    job = Job.parse(TEXT.format(name=kafka.fresh_name("writer"), bootstrap=kafka.bootstrap, key=key))
    Admin(job.kafka.bootstrap, job.kafka_admin()).ensure(job.topic_wishes())
    return job


@pytest.fixture
def job(kafka: Any) -> Job:
    return new_job(kafka)


def values(job: Job, topic: str = "records") -> list[Any]:
    return [json.loads(message.value or b"") for message in read_messages(job, topic, until_end=True)]
