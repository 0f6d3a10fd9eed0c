"""The deviation below which a column is only centred is a setting of the columns, as clip and half-life are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from streamtrain.compute import snapshot
from streamtrain.compute.moments import MOMENTS
from streamtrain.job import Job
from tests.e2e.harness import LiveJob


def test_it_is_kept_replayed_and_refused_when_it_changes(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, workers=1)
    text = job.path.read_text()
    job.path.write_text(text.replace("standardize = true", "standardize = { floor = 100.0 }"))
    assert Job.load(job.path).schema.digest() != job.job.schema.digest()
    job.produce(1000)
    job.train("--until-end")
    moments = snapshot.decode(job.newest().model)["standardize.numbers"]
    assert np.array_equal(moments[:, MOMENTS.index("floor")], [100.0] * 4)
    job.path.write_text(text.replace("standardize = true", "standardize = { floor = 50.0 }"))
    done = job.command("train", "--until-end")
    assert done.returncode == 2 and "floor" in done.stderr, done.stderr
    job.replayed()  # by the start's floor, whatever the file says now
