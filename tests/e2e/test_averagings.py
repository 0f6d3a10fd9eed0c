"""The outer step in a job file: from a topic to a snapshot and back, over stops and killed workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

import streamtrain
from tests.e2e.harness import LiveJob, rows

COUNT = 3_000
OUTER = '[train.averaging]\nname = "outer_nesterov"\nrate = 1.2\nmomentum = 0.4\n'
GIVEN = {"partitions": 1, "round_interval": "off", "averaging_frequency": 2}


def live(kafka: Any, folder: Path, averaging: str) -> LiveJob:
    return LiveJob(kafka, folder, **GIVEN, keep=f"8\n{averaging}")


def test_it_goes_on_over_stops_and_killed_workers(kafka: Any, tmp_path: Path) -> None:
    job = live(kafka, tmp_path, OUTER)
    job.produce(COUNT // 2)
    events = job.train("--until-end", failpoints="worker.stepped=9,worker.averaging=3")
    assert any(event["event"] == "worker_died" for event in events)
    job.verified()
    job.replayed()
    fitted, newest = streamtrain.fit(job.job, list(rows(COUNT // 2))), job.newest()
    assert fitted.manifest.metrics["total"] == newest.manifest.metrics["total"]
    assert newest.trainer is not None
    kept = safetensors.numpy.load(newest.trainer)
    velocities = [kept[name] for name in kept if name.startswith("outer.velocity.")]
    assert len(velocities) == 4 and all(np.abs(velocity).max() > 0 for velocity in velocities)
    assert newest.manifest.model_spec["averaging"] == {"name": "outer_nesterov", "rate": 1.2, "momentum": 0.4}
    job.produce(COUNT // 2, seed=1)
    job.train("--until-end")
    job.verified()
    job.replayed()


def test_another_averaging_is_another_lineage(kafka: Any, tmp_path: Path) -> None:
    """What a velocity was gathered for stands in the state."""
    job = live(kafka, tmp_path, OUTER)
    job.produce(500)
    job.train("--until-end")
    text = job.path.read_text()
    for other in (OUTER.replace("0.4", "0.5"), ""):
        job.path.write_text(text.replace(OUTER, other))
        refused = job.command("train", "--until-end")
        assert refused.returncode == 2 and "train.averaging: snapshot" in refused.stderr, refused.stderr
    job.path.write_text(text.replace(OUTER, ""))
    job.train("--until-end", "--fresh")
