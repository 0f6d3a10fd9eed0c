"""Batch norm from a topic to a snapshot and back: workers killed, verified, replayed to the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import streamtrain
from streamtrain import LiveModel
from streamtrain.clients.snapshot import snapshot_of
from tests.e2e.harness import LiveJob, rows

COUNT = 4_000
LAYERS = 'layers = [ { dense = 16 }, { batch_norm = 1e-5, activation = "gelu" }, { dense = 8 }, { batch_norm = 1e-3 } ]'


@pytest.mark.parametrize("growth", ['"off"', "300"])
def test_from_a_topic_to_a_snapshot_and_back(kafka: Any, tmp_path: Path, growth: str) -> None:
    settings = {"round_interval": "off", "averaging_frequency": 3, "batch_growth": growth}
    job = LiveJob(kafka, tmp_path, partitions=1, model=LAYERS, **settings)
    job.produce(COUNT)
    events = job.train("--until-end", failpoints="worker.stepped=9,worker.averaging=3")
    assert any(event["event"] == "worker_died" for event in events)
    assert job.verified()["rows"] == {"trained": COUNT, "dead_lettered": 0, "filtered": 0}
    assert len(job.replayed()["snapshots"]) >= 1
    newest, fitted = snapshot_of(job.newest()), streamtrain.fit(job.job, list(rows(COUNT)))
    assert newest.parameters.keys() == fitted.parameters.keys()
    assert all(newest.parameters[name].tobytes() == array.tobytes() for name, array in fitted.parameters.items())
    assert abs(newest.parameters["batch_norm0.running_mean"]).max() > 0.01
    total = newest.manifest.metrics["total"]
    assert total["accuracy"] > total["constant_accuracy"] + 0.05, total
    asked = list(rows(300))
    with LiveModel(job.name, bootstrap=job.bootstrap) as model:
        model.wait_ready(60)
        assert model.predict(asked) == fitted.predict(asked)
