"""The newest snapshot is whole and the one that control names, or nothing is trained; --fresh continues above both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from streamtrain.kafka.admin import Admin
from streamtrain.kafka.control import ControlTopic
from streamtrain.topics.control import Control
from streamtrain.topics.shelves import is_manifest
from streamtrain.topics.snapshots import publish
from streamtrain.topics.topic import Message, job_topics
from tests.e2e.harness import LiveJob, rows
from tests.e2e.threaded import rows_after, trained


def control(job: LiveJob) -> Control:
    with ControlTopic({"bootstrap.servers": job.bootstrap}, f"{job.name}.control") as topic:
        return topic.look()


def made_anew(job: LiveJob, key: str) -> None:
    """Deletes the topic and makes it again, empty."""
    name = f"{job.name}.{key}"
    client = AdminClient({"bootstrap.servers": job.bootstrap})
    client.delete_topics([name])[name].result(240)
    Admin(job.bootstrap).ensure(wish for wish in job_topics(job.name) if wish.key == key)


def test_a_snapshots_topic_that_lost_everything_is_refused_and_fresh_goes_on_above(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(2000)
    last = trained(job.path).events[-1]["version"]
    said = control(job).newest
    assert said is not None and said.version == last and said.digest == job.newest().digest
    made_anew(job, "snapshots")
    refused = trained(job.path)
    assert refused.code == 1, refused.errors
    assert f"expected version {last}, digest {said.digest.hex()[:12]}" in refused.errors[0]
    assert "found none" in refused.errors[0] and "--fresh" in refused.errors[0]
    assert control(job).newest == said, "nothing was published"
    rows_after(job.path, fresh=True)
    with job.topic() as topic:
        assert min(located.manifest.version for located in topic.list()) > last


def test_runs_count_on_from_the_manifest_where_control_was_lost(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    for part in range(3):
        job.produce(500, seed=part)
        rows_after(job.path)
    assert sorted(control(job).runs) == [1, 2, 3]
    made_anew(job, "control")
    job.produce(500, seed=3)
    rows_after(job.path)
    found = control(job)
    assert sorted(found.runs) == [4] and job.newest().manifest.run == found.runs[4].run
    assert found.newest is not None and found.newest.digest == job.newest().digest


def test_too_many_dead_letters_stop_a_run_which_says_how_it_ended(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, max_dead_letter_share=0.2)
    job.produce(500)
    rows_after(job.path)
    good, bad = (rows(800, seed) for seed in (0, 1))
    pairs = ((row, {**other, "x2": "n/a"}) for row, other in zip(good, bad, strict=True))
    job.produce_values(msgpack.packb(row) for pair in pairs for row in pair)
    ended = trained(job.path)
    assert ended.code == 1 and "x $.x2: expected number" in ended.errors[0], ended.errors
    job.verified()
    ends = control(job).ends
    assert [(number, ends[number].exit_code) for number in sorted(ends)] == [(1, 0), (2, 1)]
    assert ends[1].reason == "the end of what was asked for" and "are dead letters" in ends[2].reason


def write(job: LiveJob, *messages: Message) -> None:
    """Messages no trainer would write."""
    producer = Producer({"bootstrap.servers": job.bootstrap})
    for key, value, _ in messages:
        producer.produce(f"{job.name}.snapshots", key=key, value=None if value is None else bytes(value))
    assert producer.flush(240) == 0


def not_a_manifest(job: LiveJob) -> None:
    write(job, Message(b"s/0007/m", b"not a manifest"))


def an_older_manifest(job: LiveJob) -> None:
    with job.topic() as topic:
        manifests = [read for read in topic.window(*topic.bounds()) if is_manifest(read.key)]
    write(job, Message(manifests[-2].key or b"", manifests[-2].value))


def a_missing_chunk(job: LiveJob) -> None:
    newest = job.newest()
    manifest = replace(newest.manifest, version=newest.manifest.version + 1, kept=newest.kept())
    messages = publish(manifest, newest.model, newest.trainer or b"", keep=100).messages
    write(job, *(message for message in messages if not message.key.endswith(b"/c/0000")))


@pytest.mark.parametrize("damage", [not_a_manifest, an_older_manifest, a_missing_chunk])
def test_a_damaged_newest_snapshot_is_refused_and_fresh_goes_on_above_it(
    kafka: Any, tmp_path: Path, damage: Callable[[LiveJob], None]
) -> None:
    job = LiveJob(kafka, tmp_path, keep=100)  # a busy machine may publish often
    job.produce(500)
    rows_after(job.path)
    before = job.newest().manifest
    damage(job)
    refused = trained(job.path)
    where = f"{job.name}.snapshots@"
    assert refused.code == 1 and "start over with --fresh" in refused.errors[0] and where in refused.errors[0]
    if damage is not_a_manifest:  # the command's own words, once
        fresh = job.command("train", "--until-end", "--fresh")
        assert fresh.returncode == 0, fresh.stderr
        warnings = [line for line in fresh.stderr.splitlines() if " WARNING coordinator " in line]
        assert len(warnings) == 1 and where in warnings[0] and "passed over" in warnings[0], fresh.stderr
    else:
        rows_after(job.path, fresh=True)
    after = job.newest().manifest
    assert after.lineage != before.lineage and after.version > before.version + 1
    assert job.verified()["rows"]["trained"] == 500
    job.produce(100, seed=1)
    assert rows_after(job.path) == 600
    assert rows_after(job.path, restore=before.version) == before.rows_seen
