"""Forgeries through a real Kafka: the topics of a job that was trained and asked are read, forged and written anew,
with every message at the offset it had; `streamtrain verify` finds there what it finds in lists."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from waiting import wait_for

from streamtrain.checks.verify.reader import read_topics
from streamtrain.checks.verify.topics import KEYS
from streamtrain.topics.topic import job_topics
from tests.checks.verify.forgeries import forged
from tests.checks.verify.topics_in_memory import Partition, Written
from tests.e2e import threaded
from tests.e2e.harness import LiveJob, rows

pytestmark = pytest.mark.kafka
SHORT = ("the newest log is missing", "a prediction is committed twice")
FORGED = {
    "the newest log is missing": "rounds",
    "a tombstone in the round log": "rounds",
    "a thousand rows seen more everywhere": "snapshots",
    "a dead letter names another offset": "dead_letters",
    "a prediction is committed twice": "predictions",
}


@pytest.fixture
def job(kafka, tmp_path: Path) -> LiveJob:
    """Trained in three publications, with dead letters; then asked, also for what cannot be answered."""
    job = LiveJob(kafka, tmp_path, partitions=2, format="json", max_dead_letter_share=1)
    for seed in range(3):
        job.produce(200, seed)
        job.produce_values([b'{"x1": "bad"}'] * 4, partition=0)
        threaded.rows_after(job.path)
    requests = [{"key": b"%d" % at, "value": json.dumps(row)} for at, row in enumerate(rows(40))]
    requests += [{"value": bad} for bad in (b'{"x1": "bad"}', b"{", b"", None, b'[{"x1": 1}, {"x1": "bad"}]')]
    job.produce_messages(requests, f"{job.name}.requests")
    assert job.here("predict", "--until-end").returncode == 0
    job.verified()
    return job


def read(job: LiveJob) -> Written:
    with read_topics(job.job) as topics:
        written = Written(job.name)
        for key in KEYS:
            topic = getattr(topics, key)
            found = [(each.low, each.end, list(each.read(each.low, each.end))) for each in topic.partitions]
            written.partitions[key] = [Partition(*each) for each in found]
            written.topic_ids[key] = topic.topic_id
    return written


def write(job: LiveJob, name: str, partitions: list[Partition]) -> None:
    """Makes the topic again with these messages; each run of offsets is a transaction, whose marker takes the next."""
    admin = AdminClient({"bootstrap.servers": job.bootstrap})
    admin.delete_topics([name])[name].result(30)
    wait_for(lambda: name not in job.admin.names())
    job.admin.ensure(job_topics(job.name, job.job.topic_tables()))
    quick = {"retry.backoff.ms": 1, "retry.backoff.max.ms": 20}  # a transaction in 5 ms, and not in 100
    producer = Producer({"bootstrap.servers": job.bootstrap, "transactional.id": f"forger-{name}", **quick})
    producer.init_transactions(60)
    for number, partition in enumerate(partitions):
        runs = groupby(enumerate(partition.messages), key=lambda each: each[1].offset - each[0])
        for _, run in runs:
            producer.begin_transaction()
            for _, message in run:
                more = {"timestamp": message.timestamp_ms, "headers": list(message.headers)}
                producer.produce(name, message.value, message.key, number, **more)
            producer.commit_transaction(60)


@pytest.mark.parametrize("names", [SHORT, pytest.param(tuple(FORGED), marks=pytest.mark.full)], ids=["two", "all"])
def test_what_lists_tell_kafka_tells(job: LiveJob, names: tuple[str, ...]) -> None:
    good = read(job)
    for name in names:
        topic = FORGED[name]
        topic_name = job.job.topic(topic.replace("_", "-")).name or ""
        write(job, topic_name, forged(good, name).partitions[topic])
        done = job.here("verify", "--json")
        report = json.loads(done.stdout)
        assert done.returncode == 1 and not report["ok"], f"{name}: {done.stdout}\n{done.stderr}"
        write(job, topic_name, good.partitions[topic])
    job.verified()
