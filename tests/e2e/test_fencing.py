"""One run has a job: zombies are mute, time-outs and new partitions are survived."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka.admin import AdminClient
from more_partitions import add_partitions
from waiting import wait_for

from streamtrain.topics.topic import job_topics
from tests.e2e.harness import LiveJob, Running
from tests.e2e.threaded import Run


def drain(running: Running) -> int:
    running.process.send_signal(signal.SIGTERM)
    return running.finish()


def test_of_two_trainers_started_at_once_one_trains(kafka: Any, tmp_path: Path) -> None:
    """The job is new: both make its topics, take it and want to begin its lineage."""
    job = LiveJob(kafka, tmp_path)
    own = [wish.name for wish in job_topics(job.name) if wish.owned]
    client = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for done in client.delete_topics(own).values():
        done.result(240)
    wait_for(lambda: all(job.admin.absent(name) for name in own))
    job.produce(2000)
    racing = [Run(job.path) for _ in range(2)]
    wait_for(lambda: any(run.is_over for run in racing))
    (left,) = [run for run in racing if not run.is_over]
    assert [run.finish() for run in racing if run is not left] == [4], [run.errors for run in racing]
    # what is there may be the other's
    wait_for(lambda: any(e["event"] in ("published", "started") and e.get("rows") == 2000 for e in left.events))
    assert left.drain() == 0, left.errors
    assert job.verified()["rows"]["trained"] == 2000


def test_an_old_run_woken_after_its_replacement_is_mute(kafka: Any, tmp_path: Path) -> None:
    """Its processes are stopped in the midst of a transaction, and continued once another run has published."""
    job = LiveJob(kafka, tmp_path)
    old = job.start("train", STREAMTRAIN_FAILPOINTS="coordinator.stall_in_transaction=5~8")
    for part in range(3):
        job.produce(500, seed=part)
        old.wait_event("published" if part < 2 else "progress", rows=500 * (part + 1))
    tree = [psutil.Process(old.process.pid), *old.children()]
    for process in tree:
        process.suspend()
    new = Run(job.path)
    new.wait_event("started")
    job.produce(500, seed=9)
    new.wait_event("published", rows=2000)
    held = job.newest().manifest
    for process in tree:
        process.resume()
    assert old.finish() == 4
    job.produce(500, seed=10)
    new.wait_event("published", rows=2500)
    assert new.drain() == 0
    newest = job.newest().manifest
    assert newest.run == held.run and newest.version > held.version
    assert job.verified()["rows"]["trained"] == 2500


@pytest.mark.full
def test_a_transaction_timed_out_by_the_broker_is_published_again(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(3000)
    running = job.start("train", STREAMTRAIN_FAILPOINTS="coordinator.stall_in_transaction=3~25")
    running.wait_event("published", rows=3000, timeout_s=120)
    job.produce(500, seed=1)
    running.wait_event("published", rows=3500)
    assert drain(running) == 0
    assert all(event["event"] != "restarting" for event in running.events)
    assert job.verified()["rows"]["trained"] == 3500
    job.replayed()


def test_partitions_added_while_training_are_read_from_their_beginning(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=2)
    job.produce(1000)
    running = Run(job.path)
    running.wait_event("published", rows=1000)
    add_partitions(job.bootstrap, job.records, 4)
    job.settings["partitions"] = 4
    job.produce(2000, seed=1)
    running.wait_event("published", rows=3000)
    assert running.drain() == 0
    report = job.verified()
    assert report["rows"]["trained"] == 3000 and len(job.newest().manifest.positions.partitions) == 4
    job.replayed()


def test_no_broker_is_said_within_ten_seconds(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    began = time.monotonic()
    refused = job.here("train", "--bootstrap", "127.0.0.1:9")
    assert refused.returncode == 3 and "127.0.0.1:9" in refused.stderr
    assert time.monotonic() - began < 90  # 10 s and a loaded machine's start
