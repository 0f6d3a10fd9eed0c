"""One run holds a job: zombies are mute, time-outs and lost brokers are survived."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from confluent_kafka.admin import AdminClient
from more_partitions import add_partitions
from waiting import wait_for

from streamtrain.broker import Broker
from streamtrain.topics.topic import job_topics
from tests.chaos.faults import the_one_left
from tests.chaos.trainer import Trainer
from tests.e2e.harness import LiveJob, Running


def drain(running: Running) -> int:
    running.process.send_signal(signal.SIGTERM)
    return running.finish()


def test_the_second_of_two_trainers_takes_the_job(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(2000)
    first = job.start("train")
    first.wait_event("published", rows=2000)
    second = job.start("train")
    second.wait_event("started")
    job.produce(1000, seed=1)
    second.wait_event("published", rows=3000)
    assert first.finish() == 4, first.errors()
    assert drain(second) == 0
    assert job.verified()["rows"]["trained"] == 3000


def test_of_two_trainers_started_at_once_one_trains(kafka, tmp_path: Path) -> None:
    """The job is new: both make its topics, take it and want to begin its lineage."""
    job = LiveJob(kafka, tmp_path)
    own = [wish.name for wish in job_topics(job.name) if wish.owned]
    client = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for done in client.delete_topics(own).values():
        done.result(60)
    wait_for(lambda: all(job.admin.absent(name) for name in own))
    job.produce(2000)
    racing = [Trainer(job, tmp_path / f"{number}.log") for number in range(2)]
    left = the_one_left(racing)
    wait_for(lambda: left.first("published", rows=2000) or left.first("started", rows=2000))  # the other's, if replaced
    assert left.end() == 0, left.errors()
    assert job.verified()["rows"]["trained"] == 2000


def test_an_old_run_woken_after_its_replacement_is_mute(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    old = job.start("train", STREAMTRAIN_FAILPOINTS="coordinator.stall_in_transaction=5~8")
    for part in range(3):
        job.produce(500, seed=part)
        old.wait_event("published" if part < 2 else "progress", rows=500 * (part + 1))
    tree = [psutil.Process(old.process.pid), *old.children()]
    for process in tree:
        process.suspend()
    new = job.start("train")
    new.wait_event("started")
    job.produce(500, seed=9)
    new.wait_event("published", rows=2000)
    held = job.newest().manifest
    for process in tree:
        process.resume()
    assert old.finish() == 4
    job.produce(500, seed=10)
    new.wait_event("published", rows=2500)
    assert drain(new) == 0
    newest = job.newest().manifest
    assert newest.run == held.run and newest.version > held.version
    assert job.verified()["rows"]["trained"] == 2500


def test_a_transaction_timed_out_by_the_broker_is_published_again(kafka, tmp_path: Path) -> None:
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


def test_a_broker_killed_and_started_again_costs_nothing(private_kafka: Callable[..., Broker], tmp_path: Path) -> None:
    broker = private_kafka(data=tmp_path / "kafka")

    class Kafka:
        bootstrap = broker.bootstrap

        @staticmethod
        def fresh_name(prefix: str) -> str:
            return prefix

    job = LiveJob(Kafka, tmp_path)
    job.produce(2000)
    running = job.start("train")
    running.wait_event("published", rows=2000)
    job.produce(1000, seed=1)
    broker.kill()
    broker.start()
    job.produce(1000, seed=2)
    running.wait_event("published", rows=4000, timeout_s=120)
    assert drain(running) == 0
    assert job.verified()["rows"]["trained"] == 4000


def test_partitions_added_while_training_are_read_from_their_beginning(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=2)
    job.produce(1000)
    running = job.start("train")
    running.wait_event("published", rows=1000)
    add_partitions(job.bootstrap, job.records, 4)
    job.settings["partitions"] = 4
    job.produce(2000, seed=1)
    running.wait_event("published", rows=3000, timeout_s=90)
    assert drain(running) == 0
    report = job.verified()
    assert report["rows"]["trained"] == 3000 and len(job.newest().manifest.positions.partitions) == 4
    job.replayed()


def test_no_broker_is_said_within_ten_seconds(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    began = time.monotonic()
    refused = job.command("train", "--bootstrap", "127.0.0.1:9")
    assert refused.returncode == 3 and "127.0.0.1:9" in refused.stderr
    assert time.monotonic() - began < 90  # 10 s and a loaded machine's start
