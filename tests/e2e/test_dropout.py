"""Dropout from a topic to a snapshot and back: workers killed, verified, replayed to the same bits, off in answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamtrain
from streamtrain import LiveModel
from streamtrain.clients.snapshot import snapshot_of
from tests.e2e.answers import answered, predicted
from tests.e2e.harness import LiveJob, rows

COUNT = 4_000
LAYERS = 'layers = [ { dense = 16 }, { layer_norm = 1e-5, activation = "gelu" }, { dropout = 0.3 } ]'


def test_from_a_topic_to_a_snapshot_and_back(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", averaging_frequency=3, model=LAYERS)
    job.produce(COUNT)
    events = job.train("--until-end", failpoints="worker.stepped=9,worker.averaging=3")
    assert any(event["event"] == "worker_died" for event in events)
    assert job.verified()["rows"] == {"trained": COUNT, "dead_lettered": 0, "filtered": 0}
    assert len(job.replayed()["snapshots"]) >= 1
    newest, fitted = snapshot_of(job.newest()), streamtrain.fit(job.job, list(rows(COUNT)))
    assert newest.parameters.keys() == fitted.parameters.keys()
    assert all(newest.parameters[name].tobytes() == array.tobytes() for name, array in fitted.parameters.items())
    total = newest.manifest.metrics["total"]
    assert total["accuracy"] > total["constant_accuracy"] + 0.05, total
    asked = list(rows(300))
    with LiveModel(job.name, bootstrap=job.bootstrap) as model:
        model.wait_ready(60)
        answers = model.predict(asked)
        assert answers == fitted.predict(asked) == model.predict(asked)
    assert predicted(job, asked) == answered(answers)
