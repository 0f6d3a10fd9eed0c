"""Jobs that are there by their topics alone: what a real one has published last, under other names."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import wait
from dataclasses import replace

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from streamtrain.topics import control
from streamtrain.topics.manifest import encode
from streamtrain.topics.shelves import manifest_key
from streamtrain.topics.topic import job_topics, topic
from tests.e2e.harness import LiveJob


def copy_job(job: LiveJob, names: Sequence[str]) -> None:
    """A job for each name, with the newest manifest and the runs of `job`, and its topics where they can be renamed."""
    wishes = [wish for name in names for wish in job_topics(name, {}) if not topic(wish.key).renameable]
    new = [NewTopic(wish.name, wish.partitions, config=dict(wish.config)) for wish in wishes]
    admin = AdminClient({"bootstrap.servers": job.bootstrap})  # its answers come as long as it is there
    wait(admin.create_topics(new, operation_timeout=60).values(), 120)
    manifest, runs = job.manifests()[-1], job.control()
    keys = {wish.key for wish in job_topics(job.name, {}) if topic(wish.key).renameable}
    settings = {**manifest.job_settings, "topics": {key: {"name": str(job.job.topic(key).name)} for key in keys}}
    producer = Producer({"bootstrap.servers": job.bootstrap, "linger.ms": 5})
    for name in names:
        copied = replace(manifest, job=name, job_settings={**settings, "name": name}, kept=())
        producer.produce(f"{name}.snapshots", encode(copied), manifest_key(manifest.shelf))
        for entry in [*(replace(run, job=name) for run in runs.runs.values()), *runs.ends.values()]:
            message = control.message(entry)
            producer.produce(f"{name}.control", message.value, message.key)
    assert producer.flush(60) == 0
