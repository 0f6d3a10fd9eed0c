"""An optimizer with all its settings in a job file, from a topic to a snapshot and back, while workers are killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import streamtrain
from streamtrain.compute import optimizers
from tests.e2e.harness import LiveJob, rows

COUNT = 3_000
SETTINGS = """
l1 = 1e-4
l2 = 1e-4
weight_decay = 1e-3
clip_value = 5
clip_norm = 2
max_norm = 4
[optimizer.groups]
bias = { rate_factor = 2, clip_group_norm = 0.5 }
embedding = { weight_decay = 0 }
"""


def unusual() -> list[str]:
    """Those that keep the most, and those that go by parameter."""
    entries = {name: optimizers.get(name) for name in optimizers.names()}
    kept = {name: len(entry.state(optimizers.by_group(name, {})["weight"])) for name, entry in entries.items()}
    return [name for name in entries
            if kept[name] == max(kept.values()) or getattr(entries[name], "PER_PARAMETER", False)]  # fmt: skip


@pytest.mark.parametrize("name", unusual())
def test_from_a_topic_to_a_snapshot_and_back(kafka: Any, tmp_path: Path, name: str) -> None:
    optimizer = f'name = "{name}"\nlearning_rate = 1e-2{SETTINGS}'
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", averaging_frequency=2, optimizer=optimizer)
    job.produce(COUNT)
    events = job.train("--until-end", failpoints="worker.stepped=9,worker.averaging=3")
    assert any(event["event"] == "worker_died" for event in events)
    assert job.verified()["rows"] == {"trained": COUNT, "dead_lettered": 0, "filtered": 0}
    assert len(job.replayed()["snapshots"]) >= 1
    manifest = job.newest().manifest
    settings = manifest.job_settings["optimizer"]
    assert settings["groups"]["bias"] == {"rate_factor": 2.0, "clip_group_norm": 0.5} and settings["max_norm"] == 4.0
    fitted = streamtrain.fit(job.job, list(rows(COUNT)))
    assert fitted.manifest.metrics["total"] == manifest.metrics["total"]
    job.produce(100, seed=1)
    assert job.train("--until-end")  # its own snapshot fits it
    job.verified()
