"""`publish.archive.every` is a time between snapshots of the job, not of one run of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.e2e.harness import LiveJob


def test_a_second_run_within_the_time_archives_nothing(kafka: Any, tmp_path: Path) -> None:
    live = LiveJob(kafka, tmp_path, partitions=1, publish_interval="50ms")
    for run in range(2):
        live.produce(600, seed=run)
        live.train("--until-end", "--set", 'publish.archive={ every = "10m", keep = 5 }')
    with live.topic() as topic:
        held = [located.manifest for located in topic.list()]
    assert {manifest.run.number for manifest in held} == {1, 2}
    assert [manifest.run.number for manifest in held if manifest.archived] == [1]
