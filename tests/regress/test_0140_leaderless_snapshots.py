"""A start while the snapshots partition has no leader waits for it, and goes on where the job was: nothing is empty."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from streamtrain.broker import Broker
from streamtrain.topics.snapshots import TOPIC
from tests.e2e.harness import LiveJob, Running


class Named:
    """A Kafka of the test's own, for the harness."""

    def __init__(self, broker: Broker, ending: str = "") -> None:
        self.bootstrap = broker.bootstrap
        self.ending = ending

    def fresh_name(self, prefix: str) -> str:
        return prefix + self.ending


def said(running: Running, text: str) -> None:
    """Waits until the command has logged `text`."""
    until = time.monotonic() + 240
    while text not in running.errors():
        assert time.monotonic() < until and running.process.poll() is None, running.errors()[-3000:]
        time.sleep(0.1)


@pytest.mark.full
def test_a_start_without_a_leader_of_the_snapshots_waits(private_kafka: Callable[..., Broker], tmp_path: Path) -> None:
    broker = private_kafka(nodes=3, data=tmp_path / "kafka")
    made = NewTopic("job.snapshots", 1, replica_assignment=[[3]], config={**TOPIC.config, "min.insync.replicas": "1"})
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    client.create_topics([made])["job.snapshots"].result(30)
    job = LiveJob(Named(broker), tmp_path)
    job.produce(3000)
    job.train("--until-end")
    before = job.newest().manifest
    broker.kill(2)
    again = job.start("train", "--until-end")
    said(again, "waiting for Kafka")
    broker.start()
    assert again.finish(300) == 0, again.errors()
    after = job.newest().manifest
    assert (after.lineage, after.version, after.rows_seen) == (before.lineage, before.version, 3000)
    assert job.verified()["rows"]["trained"] == 3000
