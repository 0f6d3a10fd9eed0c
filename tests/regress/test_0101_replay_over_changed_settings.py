"""Replay knows what a round depended on from the round log, whatever has become of the snapshots between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.harness import LiveJob, rows

ARCHIVE = ("--set", 'publish.archive={ every = "10h", keep = 1 }')  # the first trained snapshot stays
CHANGES = [
    (),
    ("optimizer.learning_rate=1e-2", "optimizer.beta1=0.5"),
    ("train.workers=3", "train.averaging_frequency=2"),
    ("train.batch_rows=40", "records.format=json"),
    ("train.workers=1", "train.averaging_frequency=7", "optimizer.learning_rate=1e-4", "optimizer.beta2=0.9"),
    (),
]


def start(live: LiveJob, seed: int, changes: tuple[str, ...]) -> None:
    if "records.format=json" in changes:
        live.produce_values(json.dumps(row).encode() for row in rows(900, seed))
    else:
        live.produce(900, seed)
    live.train("--until-end", *ARCHIVE, *(word for change in changes for word in ("--set", change)))


def test_each_setting_changed_between_starts_and_the_snapshots_between_gone(kafka: Any, tmp_path: Path) -> None:
    live = LiveJob(kafka, tmp_path, partitions=2, keep=2, publish_interval="50ms")
    for seed, changes in enumerate(CHANGES):
        start(live, seed, changes)
    with live.topic() as topic:
        held = [located.manifest for located in topic.list()]
    first = held[0]
    assert first.archived and first.run.number == 1 and held[1].run.number >= 5, "those of four starts are gone"
    report = live.replayed(first.version)
    assert not report["notes"]
    found = report["snapshots"]
    assert [snapshot["version"] for snapshot in found] == list(range(first.version + 1, held[-1].version + 1))
    assert [snapshot["version"] for snapshot in found if snapshot["whole"]] == [m.version for m in held[1:]]
