"""Records that are gone before they were trained: a start and a running trainer stop and name the gap."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from waiting import wait_for

from streamtrain.kafka.admin import Admin
from streamtrain.topics.topic import TopicWish, job_topics
from tests.e2e.harness import LiveJob, Running
from tests.e2e.threaded import Run, rows_after, trained


def delete(job: Any, *names: str) -> None:
    """Deletes the topics, by default that of the records; returns when no broker knows them."""
    names = names or (job.records,)
    client = AdminClient({"bootstrap.servers": job.bootstrap})
    for done in client.delete_topics([*names]).values():
        done.result(240)
    wait_for(lambda: not {*names} & {*Admin(job.bootstrap).names()})


def make_again(job: LiveJob) -> None:
    job.admin.ensure(job_topics(job.name, job.job.topic_tables()))


def remove(job: LiveJob, offset: int, partition: int = 0) -> None:
    """Removes the records of the partition before `offset`, as retention does."""
    client = AdminClient({"bootstrap.servers": job.bootstrap})
    removed = TopicPartition(job.records, partition, offset)
    client.delete_records([removed])[removed].result(240)


@contextmanager
def unread(job: LiveJob, **bound: bool) -> Iterator[Run]:
    """A trainer that has started; its ingest reads its first record when the block is over."""
    reads = threading.Event()
    running = Run(job.path, before=lambda label: label == "ingest" and reads.wait(240), **bound)
    try:
        running.wait_event("started")
        yield running
    finally:
        reads.set()


def stopped(running: Run | Running, job: LiveJob) -> str:
    """The one error of a trainer that has stopped by itself, with what every gap's text holds."""
    code = running.finish()
    if isinstance(running, Run):
        errors = [error for error in running.errors if error.startswith("coordinator: ")]
    else:
        errors = [line for line in running.errors().splitlines() if " ERROR coordinator " in line]
    assert code == 2 and len(errors) == 1, (code, running.errors)
    for text in (f"{job.records}: snapshot ", "partition 0", "expected", "found", "--accept-gap", "--fresh"):
        assert text in errors[0], errors[0]
    return errors[0]


@pytest.fixture
def job(kafka: Any, tmp_path: Path) -> LiveJob:
    """1,000 records in one partition."""
    return LiveJob(kafka, tmp_path, partitions=1, produce=1000)


@pytest.mark.parametrize("partitions", [3, pytest.param(1, marks=pytest.mark.full)], ids=["as many", "fewer"])
def test_a_records_topic_made_again_is_a_gap_that_must_be_accepted(kafka: Any, tmp_path: Path, partitions: int) -> None:
    job = LiveJob(kafka, tmp_path, produce=999)
    rows_after(job.path)
    delete(job)
    job.admin.ensure([TopicWish("records", job.records, partitions)])
    job.settings["partitions"] = partitions
    job.produce(1501, seed=1)
    refused = trained(job.path)
    for text in ("deleted and made again", "--accept-gap", "partition 2 offset 333, found topic id"):
        assert refused.code == 2 and text in refused.errors[0], refused.errors
    checked = job.here("check")
    assert checked.returncode == 1 and "deleted and made again" in checked.stdout
    assert rows_after(job.path, accept_gap=True) == 2500
    assert job.newest().manifest.gaps
    assert job.verified()["rows"]["trained"] == 2500
    rows_after(job.path, restore=2)
    job.produce(500, seed=2)
    rows_after(job.path)
    job.verified()  # the gap is in another lineage now
    rows_after(job.path, "publish.keep=2", fresh=True)
    job.verified()


def test_records_removed_by_retention_are_a_gap_that_must_be_accepted(job: LiveJob) -> None:
    rows_after(job.path)
    job.produce(1000, seed=1)
    remove(job, 1500)
    (error,) = (refused := trained(job.path)).errors
    assert refused.code == 2 and "retention" in error and "[1000, 0]" in error
    assert rows_after(job.path, accept_gap=True) == 1500
    gap = job.newest().manifest.gaps[0]
    assert gap["from"] == [1000, 0] and gap["to"] == [1500, 0]
    assert job.verified()["rows"]["trained"] == 1500


def test_a_records_topic_deleted_while_training_stops_the_run(job: LiveJob) -> None:
    running = Run(job.path)
    running.wait_event("published", rows=1000)
    was = job.admin.topic_ids([job.records])[job.records]
    delete(job)
    error = stopped(running, job)
    assert f"expected topic id {was}" in error and "partition 0 offset 1000" in error and "it was deleted" in error


@pytest.mark.parametrize("until_end", [False, True])
def test_a_records_topic_deleted_before_it_is_read_stops_the_run(job: LiveJob, until_end: bool) -> None:
    with unread(job, until_end=until_end) as running:
        delete(job)
    assert "it was deleted" in stopped(running, job)


@pytest.mark.parametrize("count", [10, 3000])
def test_a_records_topic_made_again_while_training_stops_the_run(job: LiveJob, count: int) -> None:
    """Ingest sees neither that the topic is gone nor that it is empty; of 3,000 records it reads on."""
    running = job.start("train")
    running.wait_event("published", rows=1000)
    was, ingest = job.admin.topic_ids([job.records])[job.records], running.children()[1]
    ingest.suspend()
    delete(job)
    make_again(job)
    job.produce(count, seed=1)
    ingest.resume()
    error = stopped(running, job)
    assert "deleted and made again" in error and f"expected topic id {was}" in error
    assert f"found topic id {job.admin.topic_ids([job.records])[job.records]}" in error
    assert job.newest().manifest.rows_seen == 1000


def test_retention_that_passes_a_trainer_stops_it(job: LiveJob) -> None:
    with unread(job) as running:
        remove(job, 400)
    assert "(retention): expected to read on at [0, 0], found [400, 0]" in stopped(running, job)
    assert rows_after(job.path, accept_gap=True) == 600
    job.verified()
