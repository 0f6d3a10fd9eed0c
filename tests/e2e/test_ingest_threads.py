"""Ingest on several threads: each partition is one thread's, the log is one order of all their rows."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import msgpack
import pytest
from more_partitions import add_partitions

from tests.e2e.harness import LiveJob, rows

THREADS = ("--set", "ingest.threads=2")


def packs(count: int, of: int, seed: int = 0) -> list[bytes]:
    """Records of `of` rows each, which straddle slots; every tenth has a row that is dead."""
    given = list(rows(count, seed))
    made = [given[at : at + of] for at in range(0, count, of)]
    for pack in made[::10]:
        pack[0]["x1"] = "n/a"
    return [msgpack.packb([list(row.values()) for row in pack]) for pack in made]


@pytest.mark.full
def test_rows_of_all_threads_are_trained_once_and_replay_to_the_same_bits(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=5, round_interval="off", max_dead_letter_share=0.5, keep=1000)
    job.produce_values(packs(12_000, 37))
    job.produce(3_000, seed=1)
    dead = len(packs(12_000, 37)[::10])
    job.train("--until-end", *THREADS)
    assert job.verified()["rows"] == {"trained": 15_000 - dead, "dead_lettered": dead, "filtered": 0}
    job.replayed()


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
    running.process.send_signal(signal.SIGINT)
    assert running.finish() == 130
    assert job.verified()["rows"]["trained"] == trained
    job.replayed()


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
    running.process.send_signal(signal.SIGINT)
    assert running.finish() == 130
    assert job.verified()["rows"] == {"trained": 12_000 - dead, "dead_lettered": dead, "filtered": 0}
    job.replayed()


@pytest.mark.full
def test_a_flood_of_dead_rows_closes_rounds_and_is_published(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=4, round_interval="off", max_dead_letter_share=1.0)
    bad = json.dumps({"x1": "n/a" * 20}).encode()
    job.produce_values([bad] * 13_000)
    job.train("--until-end", *THREADS)
    assert job.verified()["rows"] == {"trained": 0, "dead_lettered": 13_000, "filtered": 0}
    job.replayed()


@pytest.mark.full
def test_new_partitions_are_read_and_a_bound_of_rows_is_kept(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=2)
    running = job.start("train", *THREADS)
    running.wait_event("started")
    job.produce(1_000)
    running.wait_rows(1_000)
    add_partitions(job.bootstrap, job.records, 5)
    for partition in range(5):
        job.produce_values(map(msgpack.packb, rows(500, partition)), partition=partition)
    running.wait_rows(3_500)
    running.process.send_signal(signal.SIGINT)
    assert running.finish() == 130
    job.produce(1_000)
    job.train("--max-rows", "300", *THREADS)
    assert job.verified()["rows"]["trained"] == 3_800
    job.replayed()
