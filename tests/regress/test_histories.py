"""What a job's topics tell of its past: settings of then, snapshots that are gone, topics made again, restores."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from confluent_kafka import Producer

from streamtrain import history
from streamtrain.compute import snapshot
from streamtrain.compute.moments import MOMENTS
from streamtrain.job import Job
from streamtrain.topics import control
from streamtrain.topics.control import Newest
from streamtrain.topics.snapshots import publish
from tests.e2e import threaded
from tests.e2e.harness import LiveJob, rows
from tests.e2e.test_gaps import delete, make_again

FIRST_MS = 1_700_000_000_000


def trained(job: LiveJob, *sets: str, **options: Any) -> list[dict[str, Any]]:
    """The events of a run to the records' end, which must end well."""
    run = threaded.trained(job.path, *sets, until_end=True, **options)
    assert run.code == 0, run.errors
    return run.events


CHANGES = [
    (),
    ("optimizer.learning_rate=1e-2", "optimizer.beta1=0.5"),
    ("train.workers=3", "train.averaging_frequency=2"),
    ("train.batch_rows=40", "records.format=json"),
    ("train.workers=1", "train.averaging_frequency=7", "optimizer.learning_rate=1e-4", "optimizer.beta2=0.9"),
    (),
]


def test_replay_knows_the_settings_of_each_start_though_snapshots_between_are_gone(kafka: Any, tmp_path: Path) -> None:
    live = LiveJob(kafka, tmp_path, partitions=2, keep=2, publish_interval="50ms")
    for seed, changes in enumerate(CHANGES):
        if "records.format=json" in changes:
            live.produce_values(json.dumps(row).encode() for row in rows(900, seed))
        else:
            live.produce(900, seed)
        trained(live, 'publish.archive={ every = "10h", keep = 1 }', *changes)  # the first trained snapshot stays
    with live.topic() as topic:
        manifests = [located.manifest for located in topic.list()]
    first = manifests[0]
    assert first.archived and first.run.number == 1, "the time between archived snapshots is the job's, not a run's"
    assert manifests[1].run.number >= 5, "those of four starts are gone"
    report = live.replayed(first.version)
    assert not report["notes"]
    found = report["snapshots"]
    assert [each["version"] for each in found] == list(range(first.version + 1, manifests[-1].version + 1))
    assert [each["version"] for each in found if each["whole"]] == [each.version for each in manifests[1:]]


def test_deaths_events_and_ends_of_runs_outlive_the_snapshots(kafka: Any, tmp_path: Path) -> None:
    """The rounds topic alone is a job's history."""
    live = LiveJob(kafka, tmp_path, partitions=1, keep=2, publish_interval="50ms")
    text = live.path.read_text().replace("[model]", 'at = { role = "event_time", unit = "ms" }\n[model]')
    live.path.write_text(text)
    manifests = {}
    for seed in range(2):
        of_rows = enumerate(rows(1000, seed), FIRST_MS + 10_000 * seed)
        live.produce_values(msgpack.packb({**row, "at": at}) for at, row in of_rows)
        events = trained(live) if seed else live.train("--until-end", failpoints="worker.stepped=5")
        manifests |= {event["version"]: event for event in events if event["event"] == "published"}
    found = list(history(live.name, live.bootstrap))
    with live.topic() as topic:
        there = {located.manifest.version: located.manifest for located in topic.list()}
    assert {one.version for one in found} == set(manifests) and len(there) <= 2 < len(found)
    for one in found:
        assert one.metrics == manifests[one.version]["metrics"]
        assert one.version not in there or one.created_ms == there[one.version].created_ms
    last = {run: [one for one in found if one.run == run][-1] for run in (1, 2)}
    assert [last[run].worker_deaths for run in (1, 2)] == [2, 0], "each of two workers once"
    assert [last[run].newest_event_ms for run in (1, 2)] == [FIRST_MS + 999, FIRST_MS + 10_999]
    assert all(one.run_end is None for one in found if one not in last.values())
    assert [last[run].run_end is not None and last[run].run_end.exit_code == 0 for run in (1, 2)] == [True, True]


def records_check(job: LiveJob) -> dict[str, object]:
    """The check of that name, of a verification that passes."""
    return next(check for check in job.verified()["checks"] if check["name"] == "records")


def test_verify_reads_no_offsets_of_a_topic_that_was_made_again(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=2, format="json")
    many = [json.dumps(list(rows(300, seed))).encode() for seed in range(4)]  # each straddles batches
    job.produce_values(many)
    trained(job)
    delete(job)
    make_again(job)
    job.produce_values(many[:1])
    trained(job, accept_gap=True)
    found = records_check(job)
    assert "of a topic that is not there any more" in str(found["not_checkable"])
    assert str(found["span"]).startswith("1 records, 300 rows")


def test_verify_reads_records_by_the_format_and_columns_they_were_trained_with(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1)
    job.produce(300)
    trained(job)
    job.path.write_text(job.path.read_text().replace('format = "msgpack"', 'format = "json"'))
    job.produce_values([json.dumps(list(rows(300, 1))).encode()])
    trained(job)
    assert str(records_check(job)["span"]).startswith("301 records, 600 rows")
    text = job.path.read_text().replace('y = { role = "label", missing = "skip" }', 'y = { role = "label" }')
    job.path.write_text(text.replace("max_dead_letter_share = 0.1", "max_dead_letter_share = 1"))
    job.produce_values([json.dumps([{"x1": 1}] * 100).encode()])
    trained(job, fresh=True)
    records_check(job)
    fast = job.here("verify", "--fast", "--json")
    assert fast.returncode == 0 and "whole records not (--fast)" in fast.stdout


def publish_without_a_chunk(job: LiveJob) -> int:
    """The newest snapshot once more, as the next version, without its first chunk; returns that version."""
    newest = job.newest()
    manifest = replace(newest.manifest, version=newest.manifest.version + 1, kept=newest.kept())
    made = publish(manifest, newest.model, newest.trainer or b"", keep=8)
    producer = Producer({"bootstrap.servers": job.bootstrap})
    entry = control.newest_message(Newest(manifest.version, made.digest, manifest.lineage))
    producer.produce(f"{job.name}.control", key=entry.key, value=bytes(entry.value or b""))
    for message in made.messages:
        if not (message.key or b"").endswith(b"/c/0000"):
            value = None if message.value is None else bytes(message.value)
            producer.produce(f"{job.name}.snapshots", key=message.key, value=value)
    assert producer.flush(10) == 0
    return manifest.version


def test_a_restore_goes_on_over_a_damaged_newest_snapshot(kafka: Any, tmp_path: Path) -> None:
    """It needs that one's manifest only. Where there are no snapshots it is refused."""
    job = LiveJob(kafka, tmp_path)
    run = threaded.trained(job.path, until_end=True, restore=5)
    assert run.code == 2 and any("none yet" in error for error in run.errors), run.errors
    job.produce(500)
    whole = trained(job)[-1]["version"]
    damaged = publish_without_a_chunk(job)
    run = threaded.trained(job.path, until_end=True)
    assert run.code == 1 and any("c/0000 is missing" in error for error in run.errors), run.errors
    job.produce(100, seed=1)
    assert trained(job, restore=whole)[-1]["rows"] == 600
    with job.topic() as topic:
        assert damaged not in [located.manifest.version for located in topic.list()]
    assert job.newest().manifest.version > damaged


def test_the_floor_of_a_deviation_is_kept_replayed_and_refused_when_it_changes(kafka: Any, tmp_path: Path) -> None:
    """The deviation below which a column is only centred is a setting of the columns, as clip and half-life are."""
    job = LiveJob(kafka, tmp_path, workers=1)
    text = job.path.read_text()
    job.path.write_text(text.replace("standardize = true", "standardize = { floor = 100.0 }"))
    assert Job.load(job.path).schema.digest() != job.job.schema.digest()
    job.produce(1000)
    trained(job)
    moments = snapshot.decode(job.newest().model)["standardize.numbers"]
    assert np.array_equal(moments[:, MOMENTS.index("floor")], [100.0] * 4)
    job.path.write_text(text.replace("standardize = true", "standardize = { floor = 50.0 }"))
    run = threaded.trained(job.path, until_end=True)
    assert run.code == 2 and any("floor" in error for error in run.errors), run.errors
    job.replayed()  # by the start's floor, whatever the file says now
