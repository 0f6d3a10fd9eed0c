"""A damaged newest snapshot: no start passes over it in silence, and --fresh begins a lineage above it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from streamtrain.topics.shelves import is_manifest
from streamtrain.topics.snapshots import publish
from streamtrain.topics.topic import Message
from tests.e2e.harness import LiveJob


def write(job: LiveJob, *messages: Message) -> None:
    """Messages no trainer would write."""
    producer = Producer({"bootstrap.servers": job.bootstrap})
    for key, value, _ in messages:
        producer.produce(f"{job.name}.snapshots", key=key, value=None if value is None else bytes(value))
    assert producer.flush(10) == 0


def not_a_manifest(job: LiveJob) -> None:
    write(job, Message(b"s/0007/m", b"not a manifest"))


def an_older_manifest(job: LiveJob) -> None:
    with job.topic() as topic:
        manifests = [read for read in topic.window(*topic.bounds()) if is_manifest(read.key)]
    write(job, Message(manifests[-2].key or b"", manifests[-2].value))


def a_missing_chunk(job: LiveJob) -> None:
    newest = job.newest()
    manifest = replace(newest.manifest, version=newest.manifest.version + 1, kept=newest.kept())
    messages = publish(manifest, newest.model, newest.trainer or b"", keep=8).messages
    write(job, *(message for message in messages if not message.key.endswith(b"/c/0000")))


KEEP = ("--set", "publish.keep=100")  # a busy machine may publish often


@pytest.mark.parametrize("damage", [not_a_manifest, an_older_manifest, a_missing_chunk])
def test_a_start_on_it_is_refused_and_fresh_goes_on_above_it(
    kafka, tmp_path: Path, damage: Callable[[LiveJob], None]
) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(500)
    job.train("--until-end", *KEEP)
    before = job.newest().manifest
    damage(job)
    refused = job.command("train", "--until-end")
    assert refused.returncode == 1 and "start over with --fresh" in refused.stderr, refused.stderr
    where = f"{job.name}.snapshots@"
    assert where in refused.stderr
    fresh = job.command("train", "--until-end", "--fresh", *KEEP)
    assert fresh.returncode == 0, fresh.stderr
    warnings = [line for line in fresh.stderr.splitlines() if " WARNING coordinator " in line]
    assert len(warnings) == 1 and where in warnings[0] and "passed over" in warnings[0], fresh.stderr
    after = job.newest().manifest
    assert after.lineage != before.lineage and after.version > before.version + 1
    assert job.verified()["rows"]["trained"] == 500
    job.produce(100, seed=1)
    assert job.train("--until-end", *KEEP)[-1]["rows"] == 600
    restored = job.train("--restore", str(before.version), "--until-end", *KEEP)
    assert restored[-1]["rows"] == before.rows_seen
