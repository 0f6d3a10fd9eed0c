"""Records that are gone before they were trained: a start and a running trainer stop and name the gap. Whatever dies,
every row is trained exactly once, and the rounds replay to the same bits; one run has a job."""

from __future__ import annotations

import json
import random
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgpack
import psutil
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from topic_changes import add_partitions, set_config
from waiting import wait_for

from streamtrain.kafka.admin import Admin
from streamtrain.topics.topic import TopicWish, job_topics
from tests.e2e.harness import LiveJob, Running, rows
from tests.e2e.threaded import Run, rows_after, trained


def delete(job: Any, *names: str) -> None:
    """Deletes the topics, by default that of the records; returns when no broker knows them."""
    names = names or (job.records,)
    client = AdminClient({"bootstrap.servers": job.bootstrap})
    for done in client.delete_topics([*names]).values():
        done.result(240)
    wait_for(lambda: not {*names} & {*Admin(job.bootstrap).names()})


def make_again(job: LiveJob) -> None:
    job.admin.ensure(job.job.topic_wishes())


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


ROWS = 6000
IN_COMMIT = [f"coordinator.in_commit=3@{random.Random(seed).uniform(0, 20):.2f}" for seed in range(5)]
SHORT = ["worker.averaging=2", "ingest.after_slot=9", "coordinator.after_manifest=2", IN_COMMIT[0]]
FULL = [
    "worker.stepped=5", "worker.before_publish=2", "worker.published=2", "worker.before_finished=3",
    "worker.after_finished=2", "worker.stepped=1", "worker.published=1", "ingest.consumed=2", "ingest.before_slot=7",
    "coordinator.before_produce=1", "coordinator.before_produce=2", "coordinator.after_chunks=4",
    "coordinator.after_commit=1", "coordinator.after_commit=3", *IN_COMMIT[1:],
]  # fmt: skip


@pytest.mark.parametrize("failpoint", [*SHORT, *(pytest.param(each, marks=pytest.mark.full) for each in FULL)])
def test_killed_at_a_failpoint(kafka: Any, tmp_path: Path, failpoint: str) -> None:
    job = LiveJob(kafka, tmp_path, publish_interval="50ms", produce=ROWS)
    events = job.train("--until-end", failpoints=failpoint)
    kinds = [event["event"] for event in events]
    if failpoint not in IN_COMMIT:  # so long after it the run may be over
        assert ("worker_died" if failpoint.startswith("worker") else "restarting") in kinds, kinds
    assert events[-1]["rows"] == ROWS
    job.check(ROWS)


def test_other_deaths_at_one_batch_end_the_job(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", produce=2000)
    done = job.command("train", "--until-end", STREAMTRAIN_FAILPOINTS="*worker.at_slot=13!KILL")
    assert done.returncode == 1 and "10 times at one batch" in done.stderr
    job.verified()


def test_of_two_trainers_started_at_once_one_trains(kafka: Any, tmp_path: Path) -> None:
    """The job is new: both make its topics, take it and want to begin its lineage."""
    job = LiveJob(kafka, tmp_path)
    delete(job, *(wish.name for wish in job_topics(job.name) if wish.owned))
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
    """Stops the processes in the middle of a transaction, and continues them once another run has published."""
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
    older = job.newest().manifest
    for process in tree:
        process.resume()
    assert old.finish() == 4
    job.produce(500, seed=10)
    new.wait_event("published", rows=2500)
    assert new.drain() == 0
    newest = job.newest().manifest
    assert newest.run == older.run and newest.version > older.version
    assert job.verified()["rows"]["trained"] == 2500


@pytest.mark.full
def test_a_transaction_timed_out_by_the_broker_is_published_again(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, produce=3000)
    running = job.start("train", STREAMTRAIN_FAILPOINTS="coordinator.stall_in_transaction=3~25")
    running.wait_event("published", rows=3000, timeout_s=120)
    job.produce(500, seed=1)
    running.wait_event("published", rows=3500)
    assert running.end() == 0
    assert all(event["event"] != "restarting" for event in running.events)
    job.check(3500)


@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=pytest.mark.full)])
def test_partitions_added_while_training_are_read_from_their_beginning(
    kafka: Any, tmp_path: Path, threads: int
) -> None:
    job, own = LiveJob(kafka, tmp_path, partitions=2, produce=1000), f"ingest.threads={threads}"
    running = Run(job.path, [own])
    running.wait_event("published", rows=1000)
    add_partitions(job.bootstrap, job.records, 5)
    job.settings["partitions"] = 5
    job.produce(2500, seed=1)
    running.wait_event("published", rows=3500)
    assert running.drain() == 0 and len(job.newest().manifest.positions.partitions) == 5
    job.produce(1000, seed=2)
    assert rows_after(job.path, own, max_rows=300) == 3800
    job.check(3800)


# -- ingest on several threads: each partition is one thread's, the log is one order of all their rows ----------------

THREADS = ("--set", "ingest.threads=2")


def packs(count: int, of: int, seed: int = 0) -> list[bytes]:
    """Records of `of` rows each, which straddle slots; every tenth has a row that is dead."""
    given = list(rows(count, seed))
    row_packs = [given[at : at + of] for at in range(0, count, of)]
    for pack in row_packs[::10]:
        pack[0]["x1"] = "bad"
    return [msgpack.packb([list(row.values()) for row in pack]) for pack in row_packs]


@pytest.mark.full
def test_rows_of_all_threads_are_trained_once_and_replay_to_the_same_bits(kafka: Any, tmp_path: Path) -> None:
    """Also a flood of dead rows, which closes rounds and is published."""
    several = packs(12_000, 37)
    some = len(several[::10])
    flood = [json.dumps({"x1": "bad" * 20}).encode()] * 13_000
    for values, good, expected, dead in ((several, 3_000, 15_000 - some, some), (flood, 0, 0, 13_000)):
        job = LiveJob(kafka, tmp_path, partitions=5, round_interval="off", max_dead_letter_share=1.0, keep=1000)
        job.produce_values(values)
        job.produce(good, seed=1)
        job.train("--until-end", *THREADS)
        job.check(expected, dead)


def test_what_no_round_has_taken_yet_is_trained_when_nothing_follows(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=2, batch_rows=64, averaging_frequency=1, workers=1)
    running = job.start("train", *THREADS)
    running.wait_event("started")
    trained = 0
    for seed, (one, other) in enumerate([(5, 0), (64, 1), (130, 63), (3, 3), (0, 64)]):
        job.produce_values(map(msgpack.packb, rows(one, seed)), partition=0)
        job.produce_values(map(msgpack.packb, rows(other, seed)), partition=1)
        trained += one + other
        running.wait_rows(trained, 20)
    assert running.end(signal.SIGINT) == 130
    job.check(trained)


def test_killed_processes_cost_no_row(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=4, keep=1000)
    running = job.start("train", *THREADS)
    running.wait_event("started")
    for step, victim in enumerate((1, 2, 1)):  # ingest, the first worker
        job.produce_values(packs(4_000, 11, step))
        running.wait_rows(step * 3_000)
        while len(children := running.children()) <= victim:
            time.sleep(0.01)
        children[victim].send_signal(signal.SIGKILL)
    dead = 3 * len(packs(4_000, 11)[::10])
    running.wait_rows(12_000 - dead)
    assert running.end(signal.SIGINT) == 130
    job.check(12_000 - dead, dead)


@pytest.mark.full
def test_records_that_were_compacted_are_counted_and_not_replayable(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1)
    written = 0

    def write(count: int) -> None:
        nonlocal written
        job.produce_messages({"value": msgpack.packb(row), "key": str(at % 40)} for at, row in enumerate(rows(count)))
        written += count

    for _ in range(3):
        write(200)
        rows_after(job.path)
    trained_rows = written
    job.check(trained=trained_rows)
    policy = {"cleanup.policy": "compact", "segment.ms": "200", "min.cleanable.dirty.ratio": "0.01"}
    set_config(job.bootstrap, job.records, policy)
    assert "cleanup.policy is compact" in job.here("check").stdout

    def compacted() -> bool:
        write(40)  # a segment is closed by what comes after it
        return sum(each.offset < trained_rows for each in job.messages()) < trained_rows / 2

    wait_for(compacted, 400)
    rows_after(job.path)
    lines = job.here("verify")
    assert lines.returncode == 0 and re.search(r"\d+ records compacted", lines.stdout), lines.stdout
    replayed = job.here("replay", "--from", str(job.manifests()[0].version))
    assert replayed.returncode == 5 and re.search(r"not replayable: \d+ records compacted", replayed.stdout), replayed
