"""`--restore N` needs the newest snapshot's manifest only: damaged chunks of it do not stand in the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from confluent_kafka import Producer

from streamtrain.topics import control
from streamtrain.topics.control import Newest
from streamtrain.topics.snapshots import publish
from tests.e2e.harness import LiveJob


def publish_without_a_chunk(job: LiveJob) -> int:
    """The newest snapshot once more, as the next version, without its first chunk; gives that version."""
    newest = job.newest()
    manifest = replace(newest.manifest, version=newest.manifest.version + 1, kept=newest.kept())
    made = publish(manifest, newest.model, newest.trainer or b"", keep=8)
    producer = Producer({"bootstrap.servers": job.bootstrap})
    said = control.newest_message(Newest(manifest.version, made.digest, manifest.lineage))
    producer.produce(f"{job.name}.control", key=said.key, value=bytes(said.value or b""))
    for message in made.messages:
        if not (message.key or b"").endswith(b"/c/0000"):
            value = None if message.value is None else bytes(message.value)
            producer.produce(f"{job.name}.snapshots", key=message.key, value=value)
    assert producer.flush(10) == 0
    return manifest.version


def test_restore_goes_on_over_a_damaged_newest_snapshot(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(500)
    whole = job.train("--until-end")[-1]["version"]
    damaged = publish_without_a_chunk(job)
    refused = job.command("train", "--until-end")
    assert refused.returncode == 1 and "c/0000 is missing" in refused.stderr, refused.stderr
    job.produce(100, seed=1)
    assert job.train("--restore", str(whole), "--until-end")[-1]["rows"] == 600
    with job.topic() as topic:
        assert damaged not in [located.manifest.version for located in topic.list()]
    assert job.newest().manifest.version > damaged


def test_restore_in_a_job_without_snapshots_is_refused(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    refused = job.command("train", "--restore", "5", "--until-end")
    assert refused.returncode == 2 and "none yet" in refused.stderr, refused.stderr
