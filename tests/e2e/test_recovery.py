"""Whatever dies, every row is trained exactly once and the rounds replay to the same bits."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import msgpack
import pytest
from long_tables import some

from tests.e2e.harness import LiveJob, Running, rows

ROWS = 6000
WORKER = ["worker.stepped=5", "worker.before_publish=2", "worker.published=2", "worker.averaging=2",
          "worker.before_finished=3", "worker.after_finished=2", "worker.stepped=1", "worker.published=1"]  # fmt: skip
INGEST = ["ingest.consumed=2", "ingest.before_slot=7", "ingest.after_slot=9"]
COORDINATOR = ["coordinator.before_produce=2", "coordinator.after_chunks=4", "coordinator.after_manifest=2",
               "coordinator.after_commit=3", "coordinator.before_produce=1", "coordinator.after_commit=1"]  # fmt: skip


@pytest.mark.parametrize("failpoint", [*WORKER, *INGEST, *COORDINATOR])
def test_killed_at_a_failpoint(kafka, tmp_path: Path, failpoint: str) -> None:
    job = LiveJob(kafka, tmp_path, publish_interval="50ms")
    job.produce(ROWS)
    events = job.train("--until-end", failpoints=failpoint)
    kinds = [event["event"] for event in events]
    assert ("worker_died" if failpoint.startswith("worker") else "restarting") in kinds, kinds
    assert events[-1]["rows"] == ROWS
    assert job.verified()["rows"] == {"trained": ROWS, "dead_lettered": 0, "filtered": 0}
    job.replayed()


@pytest.mark.parametrize("seed", range(5))
def test_killed_a_moment_after_the_commit_call(kafka, tmp_path: Path, seed: int) -> None:
    delay_ms = random.Random(seed).uniform(0, 20)
    job = LiveJob(kafka, tmp_path, publish_interval="50ms")
    job.produce(ROWS)
    events = job.train("--until-end", failpoints=f"coordinator.in_commit=3@{delay_ms:.2f}")
    assert events[-1]["rows"] == ROWS
    assert job.verified()["rows"]["trained"] == ROWS
    job.replayed()


def test_killed_workers_leave_the_bits_as_they_are(kafka, tmp_path: Path) -> None:
    states = []
    for failpoints in ("", "worker.stepped=9,worker.averaging=3,worker.published=5"):
        job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", workers=2)
        job.produce(5000)
        events = job.train("--until-end", failpoints=failpoints)
        assert any(event["event"] == "worker_died" for event in events) == bool(failpoints)
        newest = job.newest()
        states.append((newest.model, newest.trainer))
    assert states[0] == states[1]


def kill(running: Running, what: str) -> None:
    """SIGKILL to one of the run's processes, or to all at once."""
    children = running.children()
    index = {"coordinator": 0, "ingest": 1, "worker": 2}.get(what)
    victims = children if what == "all" else children[index : index + 1] if index is not None else []
    if what in ("supervisor", "all"):
        running.process.kill()
    for victim in victims:
        victim.send_signal(signal.SIGKILL)


@pytest.fixture(scope="module")
def values() -> list[bytes]:
    return [msgpack.packb(row) for row in rows(40_000)]


@pytest.mark.parametrize("seed", some(range(10)))
def test_random_kills_while_rows_stream(kafka, tmp_path: Path, values: list[bytes], seed: int) -> None:
    chance = random.Random(seed)
    job = LiveJob(kafka, tmp_path, publish_interval="50ms", batch_rows=256, workers=chance.choice([1, 2, 3]))
    total = 0
    running = job.start("train")
    for _ in range(5):
        job.produce_values(values)
        total += len(values)
        if chance.random() < 0.5:
            running.wait_event("published", rows=chance.randrange(max(1, total - len(values)), total))
        victim = chance.choice(["worker", "ingest", "coordinator", "supervisor", "all", "worker"])
        kill(running, victim)
        if victim in ("supervisor", "all"):
            running.process.wait(240)
            running = job.start("train")
    if victim in ("ingest", "coordinator"):
        running.wait_event("started")  # the new run: told to stop before it, the command ends as the old run did
    running.wait_rows(total)
    running.process.send_signal(signal.SIGTERM)
    assert running.finish() == 0
    assert job.verified()["rows"] == {"trained": total, "dead_lettered": 0, "filtered": 0}
    job.replayed()


def test_a_batch_that_kills_workers_three_times_is_rejected(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off")
    job.produce(5000)
    events = job.train("--until-end", failpoints="*worker.at_slot=13!SEGV")
    deaths = [event for event in events if event["event"] == "worker_died"]
    assert [death["slot"] for death in deaths] == [13, 13, 13] and deaths[0]["how"] == "SIGSEGV"
    assert job.verified()["rows"] == {"trained": 5000 - 64, "dead_lettered": 64, "filtered": 0}
    letters = job.command("read", "dead-letters", "--from-beginning", "--until-end", "--json").stdout
    assert "workers died at it three times" in letters
    job.replayed()


def test_other_deaths_at_one_batch_end_the_job(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off")
    job.produce(2000)
    done = job.command("train", "--until-end", STREAMTRAIN_FAILPOINTS="*worker.at_slot=13!KILL")
    assert done.returncode == 1 and "10 times at one batch" in done.stderr
    job.verified()
