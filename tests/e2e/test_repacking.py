"""From topic to topic, killed again and again: each row is there once, and those of a key or a partition in order."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from streamtrain import Job
from streamtrain.clients.repacking import FORMAT, MESSAGES_A_TRANSACTION, Repacker
from streamtrain.columns.row_plan import RowPlan
from streamtrain.errors import CheckFailed
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer, Message
from streamtrain.kafka.reader import read_all
from streamtrain.kafka.settings import Purpose
from tests.e2e.commands import Command

JOB = """
name = "{name}"
[kafka]
bootstrap.servers = "{bootstrap}"
[columns]
x = {{}}
city = {{ kind = "category", buckets = 64 }}
late = {{ role = "label", missing = "skip" }}
[model]
loss = "binary_cross_entropy"
"""
ROWS = int(4.4 * MESSAGES_A_TRANSACTION)
# each in a life of its own: with rows written and none committed, with the commit under way, behind it; then none
DEATHS = ("vectorize.written=1", "vectorize.written=2", "vectorize.written=1@2", "vectorize.committed=1", "")
NEVER_WRITTEN = 13  # left out


@pytest.fixture
def job(kafka: Any, tmp_path: Path) -> Job:
    """Partition 0 with four keys whose headers change, 1 without keys."""
    path = tmp_path / "job.toml"
    path.write_text(JOB.format(name=kafka.fresh_name("repack"), bootstrap=kafka.bootstrap))
    job = Job.load(path)
    make(job, source(job), target(job))
    return job


def make(job: Job, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": job.kafka.bootstrap})
    for made in admin.create_topics([NewTopic(name, 2, 1) for name in names]).values():
        made.result(30)


def produce(job: Job, rows: int) -> None:
    producer = Producer({"bootstrap.servers": job.kafka.bootstrap, "enable.idempotence": True})
    for x in range(rows):
        row = {"x": "n/a" if x == NEVER_WRITTEN else x, "city": f"c{x % 7}", "late": x % 2}
        keyed: dict[str, Any] = {"key": f"k{x // 2 % 4}", "headers": [("h", b"%d" % (x // 100 % 2))]}
        producer.produce(source(job), json.dumps(row), partition=x % 2, **({} if x % 2 else keyed))
        producer.poll(0)
    assert producer.flush(30) == 0


def source(job: Job) -> str:
    return str(job.topic("records").name)


def target(job: Job) -> str:
    return f"{job.name}.packed"


def messages(job: Job) -> list[Message]:
    spans = dict(enumerate(Admin(job.kafka.bootstrap, job.kafka_admin()).spans(target(job)) or []))
    with KafkaConsumer.open(Purpose.READ, job.kafka_consumer(), "test") as consumer:
        return list(read_all(consumer, target(job), spans))  # type: ignore[arg-type]


@pytest.mark.full
def test_killed_again_and_again(job: Job, tmp_path: Path) -> None:
    produce(job, ROWS)
    given = ["vectorize", str(tmp_path / "job.toml"), "--from-topic", source(job), "--to-topic", target(job), "--json"]
    codes = []
    with (tmp_path / "log").open("w") as log:
        for death in DEATHS:
            codes.append(Command(given, {**os.environ, "STREAMTRAIN_FAILPOINTS": death}, log, log).wait(60))
    assert codes == [*[-9] * (len(DEATHS) - 1), 0], (tmp_path / "log").read_text()
    plan = RowPlan(job.schema, FORMAT, FORMAT)
    by_key: dict[object, list[int]] = {}
    for message in messages(job):
        found = plan.decode([message.value or b""])
        at = message.key or message.partition
        by_key.setdefault(at, []).extend(int(x) for x in found["x"])  # type: ignore[arg-type, union-attr]
        assert [("h", b"%d" % (int(x) // 100 % 2)) for x in found["x"][:1]] == message.headers or at == 1  # type: ignore[index]
    expected: dict[object, list[int]] = {}
    for x in range(ROWS):
        if x != NEVER_WRITTEN:
            expected.setdefault(1 if x % 2 else b"k%d" % (x // 2 % 4), []).append(x)
    assert by_key == expected


def test_a_target_made_anew_is_no_more_the_one_that_was_written(job: Job) -> None:
    produce(job, 100)
    list(Repacker(job, source(job), target(job), 64).run())
    admin = AdminClient({"bootstrap.servers": job.kafka.bootstrap})
    admin.delete_topics([target(job)])[target(job)].result(30)
    make_when_gone(job)
    with pytest.raises(CheckFailed, match="made anew"):
        list(Repacker(job, source(job), target(job), 64).run())


def make_when_gone(job: Job) -> None:
    while True:
        try:
            return make(job, target(job))
        except KafkaException as still_there:
            assert still_there.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
