"""A loss with settings in a job file: from a topic to a snapshot and back, while workers are killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import streamtrain
from tests.e2e.harness import LiveJob, rows

COUNT = 3_000
LOSSES = {
    'name = "huber", delta = 0.5': {"name": "huber", "delta": 0.5},
    'name = "poisson"': {"name": "poisson"},
    'name = "binary_cross_entropy", class_weights = { 1 = 3 }, label_smoothing = 0.1': {
        "name": "binary_cross_entropy", "class_weights": {"1": 3.0}, "label_smoothing": 0.1,
    },
}  # fmt: skip


@pytest.mark.parametrize("written", LOSSES, ids=lambda text: text.split('"')[1])
def test_from_a_topic_to_a_snapshot_and_back(kafka: Any, tmp_path: Path, written: str) -> None:
    given = {"partitions": 1, "round_interval": "off", "averaging_frequency": 2, "batch_rows": 16}
    given |= {"model": f"layers = []\nloss = {{ {written} }}", "optimizer": 'name = "adam"\nlearning_rate = 3e-2'}
    job = LiveJob(kafka, tmp_path, **given)
    job.produce(COUNT)
    events = job.train("--until-end", failpoints="worker.stepped=9,worker.averaging=3")
    assert any(event["event"] == "worker_died" for event in events)
    assert job.verified()["rows"] == {"trained": COUNT, "dead_lettered": 0, "filtered": 0}
    assert len(job.replayed()["snapshots"]) >= 1
    manifest = job.newest().manifest
    assert manifest.job_settings["model"]["loss"] == LOSSES[written]
    total = manifest.metrics["total"]
    assert total["loss"] < 0.9 * total["constant_loss"], total
    fitted = streamtrain.fit(job.job, list(rows(COUNT)))
    assert fitted.manifest.metrics["total"] == total
    job.produce(100, seed=1)
    assert job.train("--until-end")  # its own snapshot fits it
    job.verified()
