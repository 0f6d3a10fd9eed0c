"""Whatever dies, every row is trained exactly once and the rounds replay to the same bits."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any

import msgpack
import pytest
from long_tables import some

from tests.e2e.harness import LiveJob, Running, rows

ROWS = 6000
IN_COMMIT = [f"coordinator.in_commit=3@{random.Random(seed).uniform(0, 20):.2f}" for seed in range(5)]
# each list in one job: run by run, of which the first begins the job's lineage
SHORT = ["worker.averaging=2", "ingest.after_slot=9", "coordinator.after_manifest=2", IN_COMMIT[0]]
WORKER = ["worker.stepped=5", "worker.before_publish=2", "worker.published=2", "worker.before_finished=3",
          "worker.after_finished=2", "worker.stepped=1", "worker.published=1"]  # fmt: skip
INGEST = ["ingest.consumed=2", "ingest.before_slot=7"]
COORDINATOR = ["coordinator.before_produce=1", "coordinator.before_produce=2", "coordinator.after_chunks=4",
               "coordinator.after_commit=3"]  # fmt: skip
COMMIT = ["coordinator.after_commit=1", *IN_COMMIT[1:]]


@pytest.mark.parametrize(
    "failpoints",
    [SHORT, *(pytest.param(each, marks=pytest.mark.full) for each in (WORKER, INGEST, COORDINATOR, COMMIT))],
    ids=["short", "worker", "ingest", "coordinator", "commit"],
)
def test_killed_at_failpoints(kafka: Any, tmp_path: Path, failpoints: list[str]) -> None:
    job = LiveJob(kafka, tmp_path, publish_interval="50ms", keep=1000)
    for number, failpoint in enumerate(failpoints, 1):
        job.produce(ROWS, seed=number)
        events = job.train("--until-end", failpoints=failpoint)
        kinds = [event["event"] for event in events]
        if failpoint not in IN_COMMIT:  # so long after it the run may be over
            assert ("worker_died" if failpoint.startswith("worker") else "restarting") in kinds, (failpoint, kinds)
        assert events[-1]["rows"] == number * ROWS, failpoint
    assert job.verified()["rows"] == {"trained": len(failpoints) * ROWS, "dead_lettered": 0, "filtered": 0}
    job.replayed()


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


@pytest.mark.full
@pytest.mark.parametrize("seed", some(range(10)))
def test_random_kills_while_rows_stream(kafka: Any, tmp_path: Path, values: list[bytes], seed: int) -> None:
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


def test_other_deaths_at_one_batch_end_the_job(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off")
    job.produce(2000)
    done = job.command("train", "--until-end", STREAMTRAIN_FAILPOINTS="*worker.at_slot=13!KILL")
    assert done.returncode == 1 and "10 times at one batch" in done.stderr
    job.verified()
