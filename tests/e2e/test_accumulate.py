"""Batches accumulated to an update, on a topic: workers killed in the middle, verified, replayed to the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamtrain
from streamtrain.clients.snapshot import snapshot_of
from tests.e2e.harness import LiveJob, rows

COUNT = 4_000


def test_from_a_topic_to_a_snapshot_and_back(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", batch_rows="16\naccumulate = 4")
    job.produce(COUNT)
    events = job.train("--until-end", failpoints="worker.stepped=9,worker.averaging=3")
    assert any(event["event"] == "worker_died" for event in events)
    assert job.verified()["rows"] == {"trained": COUNT, "dead_lettered": 0, "filtered": 0}
    assert len(job.replayed()["snapshots"]) >= 1
    newest = snapshot_of(job.newest())
    assert newest.manifest.slot.row_capacity == 64
    assert newest.manifest.metrics["updates"] == -(-COUNT // (2 * 64))   # of a worker
    other = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", batch_rows=64)
    fitted = streamtrain.fit(other.job, list(rows(COUNT)))
    assert newest.parameters.keys() == fitted.parameters.keys()
    assert all(newest.parameters[name].tobytes() == array.tobytes() for name, array in fitted.parameters.items())
