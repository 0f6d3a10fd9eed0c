"""Whatever dies, every row is trained exactly once and the rounds replay to the same bits."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import LiveJob

ROWS = 6000
IN_COMMIT = [f"coordinator.in_commit=3@{random.Random(seed).uniform(0, 20):.2f}" for seed in range(5)]
SHORT = ["worker.averaging=2", "ingest.after_slot=9", "coordinator.after_manifest=2", IN_COMMIT[0]]
WORKER = ["worker.stepped=5", "worker.before_publish=2", "worker.published=2", "worker.before_finished=3",
          "worker.after_finished=2", "worker.stepped=1", "worker.published=1"]  # fmt: skip
OTHERS = ["ingest.consumed=2", "ingest.before_slot=7", "coordinator.before_produce=1", "coordinator.before_produce=2",
          "coordinator.after_chunks=4", "coordinator.after_commit=1", "coordinator.after_commit=3",
          *IN_COMMIT[1:]]  # fmt: skip


@pytest.mark.parametrize(
    "failpoints",
    [SHORT, *(pytest.param(each, marks=pytest.mark.full) for each in (WORKER, OTHERS))],
    ids=["short", "worker", "others"],
)
def test_killed_at_failpoints(kafka: Any, tmp_path: Path, failpoints: list[str]) -> None:
    for failpoint in failpoints:
        job = LiveJob(kafka, tmp_path, publish_interval="50ms")
        job.produce(ROWS)
        events = job.train("--until-end", failpoints=failpoint)
        kinds = [event["event"] for event in events]
        if failpoint not in IN_COMMIT:  # so long after it the run may be over
            assert ("worker_died" if failpoint.startswith("worker") else "restarting") in kinds, (failpoint, kinds)
        assert events[-1]["rows"] == ROWS, failpoint
        assert job.verified()["rows"] == {"trained": ROWS, "dead_lettered": 0, "filtered": 0}, failpoint
        job.replayed()


def test_other_deaths_at_one_batch_end_the_job(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off")
    job.produce(2000)
    done = job.command("train", "--until-end", STREAMTRAIN_FAILPOINTS="*worker.at_slot=13!KILL")
    assert done.returncode == 1 and "10 times at one batch" in done.stderr
    job.verified()
