"""A schedule of the learning rate in a job file: from a topic to a snapshot and back, over stops and killed workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgpack

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


PLATEAU = """name = "adam"
learning_rate = 2e-2
[optimizer.schedule]
name = "plateau"
rows = 100
patience = {patience}
threshold = 0.02
factor = 0.75
least = 0.01
"""


def test_a_rate_falls_where_the_loss_stops_improving(kafka: Any, tmp_path: Path) -> None:
    """Over starts, workers and a coordinator that die, as of the same rows where nobody does; replayed to the bits."""
    more = [msgpack.packb(row) for row in rows(COUNT, seed=1)]
    given = {"partitions": 1, "round_interval": "off", "averaging_frequency": 2, "batch_rows": 16}
    job = LiveJob(kafka, tmp_path, **given, optimizer=PLATEAU.format(patience=2))
    job.produce(COUNT)
    events = job.train("--until-end", failpoints="worker.stepped=9,worker.averaging=3")
    assert any(event["event"] == "worker_died" for event in events)
    half = job.newest().manifest.metrics["rate_left"]
    job.produce_values(more, partition=0)
    events = job.train("--until-end", failpoints="coordinator.in_commit=2")
    assert any(event["event"] == "restarting" for event in events)
    assert job.verified()["rows"]["trained"] == 2 * COUNT
    job.replayed()
    newest = job.newest()
    left = newest.manifest.metrics["rate_left"]
    assert 0.01 <= left < half < 1 and left in [max(0.01, 0.75**n) for n in range(20)]
    assert job.command("history").stdout.count(f" {2e-2 * left:g} ")
    constant = LiveJob(kafka, tmp_path, "constant", **given, optimizer='name = "adam"\nlearning_rate = 2e-2')
    told = streamtrain.fit(job.job, list(rows(COUNT))).manifest.metrics["total"]
    assert told != streamtrain.fit(constant.job, list(rows(COUNT))).manifest.metrics["total"]
    whole = LiveJob(kafka, tmp_path, "whole", **given, optimizer=PLATEAU.format(patience=2))
    whole.produce(COUNT)
    whole.train("--until-end")
    whole.produce_values(more, partition=0)
    whole.train("--until-end")
    for ours, its in ((newest.model, whole.newest().model), (newest.trainer, whole.newest().trainer)):
        assert ours == its   # nobody died, and the same bits
    told = streamtrain.fit(job.job, list(rows(COUNT))).history.frame()["learning_rate"]
    assert told.iloc[-1] == 2e-2 * half


def test_where_it_stands_belongs_to_a_lineage(kafka: Any, tmp_path: Path) -> None:
    """Other settings are another schedule, of which nothing is known of these rows."""
    job = LiveJob(kafka, tmp_path, partitions=1, optimizer=PLATEAU.format(patience=2))
    job.produce(500)
    job.train("--until-end")
    job.path.write_text(job.path.read_text().replace("patience = 2", "patience = 3"))
    refused = job.command("train", "--until-end")
    assert refused.returncode != 0 and "optimizer.schedule" in refused.stderr and "--fresh" in refused.stderr
    job.train("--until-end", "--fresh")
