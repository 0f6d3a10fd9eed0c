"""Records that are gone before they were trained: a start and a running trainer stop and name the gap."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from streamtrain.topics.topic import job_topics
from tests.e2e.harness import LiveJob, Running


def delete(job: LiveJob) -> None:
    """Deletes the records topic; returns when no broker knows it."""
    client = AdminClient({"bootstrap.servers": job.bootstrap})
    client.delete_topics([job.records])[job.records].result(60)
    deadline = time.monotonic() + 120
    while job.records in job.admin.names():
        assert time.monotonic() < deadline


def make_again(job: LiveJob) -> None:
    job.admin.ensure(job_topics(job.name, job.job.topic_tables()))


def remove(job: LiveJob, offset: int) -> None:
    """Removes the records of partition 0 before `offset`, as retention does."""
    client = AdminClient({"bootstrap.servers": job.bootstrap})
    removed = TopicPartition(job.records, 0, offset)
    client.delete_records([removed])[removed].result(60)


def unread(job: LiveJob, *bound: str) -> tuple[Running, psutil.Process]:
    """A trainer that has started, and its ingest, stopped before it has read a record."""
    running = job.start("train", *bound)
    while len(running.children()) < 2:
        assert running.process.poll() is None, running.errors()
    ingest = running.children()[1]
    ingest.suspend()
    running.wait_event("started")
    return running, ingest


def stopped(running: Running, job: LiveJob) -> str:
    """The one error line of a trainer that has stopped by itself, with what every gap's text holds."""
    try:
        assert running.finish(60) == 2, running.errors()
    finally:
        running.process.kill()
    errors = [line for line in running.errors().splitlines() if " ERROR coordinator " in line]
    assert len(errors) == 1, running.errors()
    for text in (f"{job.records}: snapshot ", "partition 0", "expected", "found", "--accept-gap", "--fresh"):
        assert text in errors[0], errors[0]
    return errors[0]


@pytest.fixture
def job(kafka, tmp_path: Path) -> LiveJob:
    """1,000 records in one partition."""
    job = LiveJob(kafka, tmp_path, partitions=1)
    job.produce(1000)
    return job


@pytest.fixture
def running(job: LiveJob) -> Running:
    """A trainer that has published them."""
    running = job.start("train")
    running.wait_event("published", rows=1000)
    return running


def test_a_records_topic_made_again_stops_with_the_gap_named(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(1000)
    job.train("--until-end")
    delete(job)
    make_again(job)
    job.produce(1500, seed=1)
    refused = job.command("train", "--until-end")
    assert refused.returncode == 2 and "deleted and made again" in refused.stderr and "--accept-gap" in refused.stderr
    checked = job.command("check")
    assert checked.returncode == 1 and "deleted and made again" in checked.stdout
    assert job.train("--until-end", "--accept-gap")[-1]["rows"] == 2500
    assert job.newest().manifest.gaps
    assert job.verified()["rows"]["trained"] == 2500
    job.train("--until-end", "--restore", "2")
    job.produce(500, seed=2)
    job.train("--until-end")
    job.verified()  # the gap is in another lineage now
    job.train("--until-end", "--fresh", "--set", "publish.keep=2")
    job.verified()


def test_records_removed_by_retention_are_a_gap_that_must_be_accepted(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1)
    job.produce(1000)
    job.train("--until-end")
    job.produce(1000, seed=1)
    remove(job, 1500)
    refused = job.command("train", "--until-end")
    assert refused.returncode == 2 and "retention" in refused.stderr and "[1000, 0]" in refused.stderr, refused.stderr
    assert job.train("--until-end", "--accept-gap")[-1]["rows"] == 1500
    gap = job.newest().manifest.gaps[0]
    assert gap["from"] == [1000, 0] and gap["to"] == [1500, 0]
    assert job.verified()["rows"]["trained"] == 1500


def test_a_records_topic_deleted_while_training_stops_the_run(job: LiveJob, running: Running) -> None:
    was = job.admin.topic_ids([job.records])[job.records]
    delete(job)
    error = stopped(running, job)
    assert f"expected topic id {was}" in error and "partition 0 offset 1000" in error and "it was deleted" in error


@pytest.mark.parametrize("bound", [[], ["--until-end"]])
def test_a_records_topic_deleted_before_it_is_read_stops_the_run(job: LiveJob, bound: list[str]) -> None:
    running, ingest = unread(job, *bound)
    delete(job)
    ingest.resume()
    assert "it was deleted" in stopped(running, job)


@pytest.mark.parametrize("count", [10, 3000])
def test_a_records_topic_made_again_while_training_stops_the_run(job: LiveJob, running: Running, count: int) -> None:
    was = job.admin.topic_ids([job.records])[job.records]
    delete(job)
    make_again(job)
    job.produce(count, seed=1)
    error = stopped(running, job)
    assert "deleted and made again" in error and f"expected topic id {was}" in error
    assert f"found topic id {job.admin.topic_ids([job.records])[job.records]}" in error
    assert job.newest().manifest.rows_seen == 1000


def test_retention_that_passes_a_trainer_stops_it(job: LiveJob) -> None:
    running, ingest = unread(job)
    remove(job, 400)
    ingest.resume()
    assert "(retention): expected to read on at [0, 0], found [400, 0]" in stopped(running, job)
    assert job.train("--until-end", "--accept-gap")[-1]["rows"] == 600
    job.verified()
