"""A schedule of the learning rate in a job file: from a topic to a snapshot and back, over stops and killed workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamtrain
from tests.e2e.harness import LiveJob, rows

COUNT = 3_000
SCHEDULE = """name = "adam"
learning_rate = 1e-2
[optimizer.schedule]
name = "cosine"
steps = 12
restarts = true
growth = 2
end = 0.1
warm_up = 4
"""


def test_it_goes_by_the_steps_of_the_lineage(kafka: Any, tmp_path: Path) -> None:
    """Whoever trains them, and in how many runs; a constant rate gives other parameters."""
    given = {"partitions": 1, "round_interval": "off", "averaging_frequency": 2}
    job = LiveJob(kafka, tmp_path, **given, optimizer=SCHEDULE)
    job.produce(COUNT // 2)
    events = job.train("--until-end", failpoints="worker.stepped=9,worker.averaging=3")
    assert any(event["event"] == "worker_died" for event in events)
    assert job.verified()["rows"]["trained"] == COUNT // 2
    job.replayed()
    fitted = streamtrain.fit(job.job, list(rows(COUNT // 2)))
    assert fitted.manifest.metrics["total"] == job.newest().manifest.metrics["total"]
    plain = LiveJob(kafka, tmp_path, "plain", **given, optimizer='name = "adam"\nlearning_rate = 1e-2')
    constant = streamtrain.fit(plain.job, list(rows(COUNT // 2)))
    assert constant.manifest.metrics["total"] != fitted.manifest.metrics["total"]
    job.produce(COUNT // 2, seed=1)
    job.train("--until-end")
    job.verified()
    job.replayed()
    told = job.newest().manifest.job_settings["optimizer"]["schedule"]
    assert told == {"name": "cosine", "steps": 12, "end": 0.1, "restarts": True, "growth": 2, "warm_up": 4}
