"""A commit that the broker has made though its answer is lost is found, not made twice; a deaf client is replaced."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from failing_librdkafka import built, environment

from streamtrain.topics.shelves import is_manifest
from tests.e2e.harness import LiveJob

ROWS = 2000
LOST = "transaction outcome unknown"


@pytest.fixture(scope="module")
def librdkafka(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("librdkafka"))


def trained(job: LiveJob, librdkafka: Path, faults: str) -> str:
    """Trains `ROWS` rows on that library; gives what was logged."""
    job.produce(ROWS)
    done = job.command("train", "--until-end", **environment(librdkafka, job.path.parent, faults))
    assert done.returncode == 0, done.stderr[-6000:]
    return done.stderr


def published_once(job: LiveJob) -> None:
    with job.topic() as topic:
        manifests = [topic.located(read) for read in topic.window(*topic.bounds()) if is_manifest(read.key)]
    times = Counter(located.manifest.version for located in manifests)
    assert set(times.values()) == {1}, times
    assert job.verified()["rows"]["trained"] == ROWS


@pytest.mark.parametrize("commit", [1, 2, 3])  # of the run's entry, the first snapshot, the first with rows
def test_a_commit_whose_answer_is_lost_is_not_made_twice(kafka, tmp_path: Path, librdkafka: Path, commit: int) -> None:
    job = LiveJob(kafka, tmp_path)
    said = trained(job, librdkafka, f"commit_transaction={commit}?")
    assert commit == 1 or LOST in said
    assert "a new run follows" not in said  # what Kafka has is gone on from at once
    published_once(job)


@pytest.mark.parametrize("says", ["*", "~"])  # nothing; that nobody leads what others of its time can read
def test_a_client_that_goes_deaf_after_a_lost_answer_is_made_anew(
    kafka, tmp_path: Path, librdkafka: Path, says: str
) -> None:
    """Looks of the snapshots: the newest run's and the newest at the start, then the one for the lost commit."""
    job = LiveJob(kafka, tmp_path)
    said = trained(job, librdkafka, f"commit_transaction=3?,query_watermark_offsets=3{says}")
    assert LOST in said and "waiting for Kafka" in said
    published_once(job)


def test_group_offsets_are_no_part_of_a_publication(kafka, tmp_path: Path, librdkafka: Path) -> None:
    """After a broker's restart librdkafka's send_offsets_to_transaction may not come back."""
    job = LiveJob(kafka, tmp_path)
    said = trained(job, librdkafka, "send_offsets_to_transaction=1")
    assert LOST not in said
    published_once(job)


@pytest.mark.parametrize("faults", ["", ",".join(f"commit={call}!" for call in (1, 2, 3))])
def test_group_offsets_follow_the_publications(kafka, tmp_path: Path, librdkafka: Path, faults: str) -> None:
    """Also when they were not taken at first and no publication comes any more."""
    job = LiveJob(kafka, tmp_path)
    job.produce(ROWS)
    running = job.start("train", **environment(librdkafka, tmp_path, faults))
    running.wait_event("published", rows=ROWS)
    expected = [position.offset for position in job.newest().manifest.positions.partitions]
    asked = [TopicPartition(job.records, partition) for partition in range(job.settings["partitions"])]
    consumer = Consumer({"bootstrap.servers": job.bootstrap, "group.id": job.name})
    until = time.monotonic() + 120
    while [part.offset for part in consumer.committed(asked, timeout=20)] != expected:
        assert running.process.poll() is None and time.monotonic() < until
    consumer.close()
    running.process.terminate()
    assert running.finish() == 0
