"""The rounds topic alone is a job's history: what a snapshot's manifest said stays known when the snapshot is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgpack

from streamtrain import history
from tests.e2e.harness import LiveJob, rows

FIRST_MS = 1_700_000_000_000


def values(count: int, seed: int) -> list[bytes]:
    return [msgpack.packb({**row, "at": FIRST_MS + 10_000 * seed + i}) for i, row in enumerate(rows(count, seed))]


def test_deaths_events_and_ends_of_runs_outlive_the_snapshots(kafka: Any, tmp_path: Path) -> None:
    live = LiveJob(kafka, tmp_path, partitions=1, keep=2, publish_interval="50ms")
    text = live.path.read_text().replace("[model]", 'at = { role = "event_time", unit = "ms" }\n[model]')
    live.path.write_text(text)
    manifests = {}
    for seed, failpoints in enumerate(("worker.stepped=5", "")):
        live.produce_values(values(1000, seed))
        for event in live.train("--until-end", failpoints=failpoints):
            if event["event"] == "published":
                manifests[event["version"]] = event
    found = list(history(live.name, live.bootstrap))
    with live.topic() as topic:
        held = {located.manifest.version: located.manifest for located in topic.list()}
    assert {one.version for one in found} == set(manifests) and len(held) <= 2 < len(found)
    for one in found:
        assert one.metrics == manifests[one.version]["metrics"]
        assert one.version not in held or one.created_ms == held[one.version].created_ms
    last = {run: [one for one in found if one.run == run][-1] for run in (1, 2)}
    assert [last[run].worker_deaths for run in (1, 2)] == [2, 0], "each of two workers once"
    assert [last[run].newest_event_ms for run in (1, 2)] == [FIRST_MS + 999, FIRST_MS + 10_999]
    assert all(one.run_end is None for one in found if one not in last.values())
    assert [last[run].run_end is not None and last[run].run_end.exit_code == 0 for run in (1, 2)] == [True, True]
