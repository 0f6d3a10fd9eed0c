"""A Kafka that was killed in the midst of transactions finishes them when it is back."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from waiting import wait_for

from streamtrain.broker import start_broker
from streamtrain.broker.distribution import find_distribution
from streamtrain.broker.fencing import fenced
from streamtrain.broker.folder import load_record
from streamtrain.broker.node import start_node
from streamtrain.kafka.admin import Admin
from streamtrain.topics.topic import TopicWish
from tests.chaos.faults import BrokerStall
from tests.kafka.test_forgotten_transactions import written_over_a_kill

pytestmark = [pytest.mark.kafka, pytest.mark.full]

PARTITIONS, WRITERS, KILLS = 3, 6, 2


def test_transactions_of_a_killed_kafka_end_when_it_is_back(tmp_path: Path) -> None:
    with start_broker(tmp_path / "kafka", fast_start=True) as broker:
        Admin(broker.bootstrap).ensure([TopicWish("x", "written", PARTITIONS)])
        for kill in range(KILLS):
            written_over_a_kill(broker, {f"{kill}-{number}": "written" for number in range(WRITERS)}, PARTITIONS)
            admin = Admin(broker.bootstrap)  # one from before the crash may keep the leader's old epoch
            wait_for(lambda admin=admin: stable(admin), 600)


def test_only_after_a_crash_the_controller_comes_first_and_once(tmp_path: Path) -> None:
    """A start that is killed before its broker is in the cluster leaves nothing to be fenced and waited for."""
    log, came_first = tmp_path / "kafka/node1/log", tmp_path / "kafka/node1/fencing.log"
    for _ in range(2):
        with start_broker(tmp_path / "kafka", fast_start=True) as broker:
            assert not came_first.exists()
            assert not fenced(log, 1)
    with start_broker(tmp_path / "kafka", fast_start=True) as broker:
        broker.kill()
        record = load_record(broker.data)
        assert record is not None
        start_node(find_distribution(None), broker.data, record, record.nodes[0], detached=False).kill()
        assert came_first.exists()
        assert fenced(log, 1)
        came_first.unlink()
        broker.start()
        assert not came_first.exists()
        assert not fenced(log, 1)


def test_a_start_waits_until_the_fencing_is_written(tmp_path: Path) -> None:
    """Were it lost, a broker that comes back would be refused until its session of before ends."""
    slow = {"broker.session.timeout.ms": "600000", "controller.quorum.append.linger.ms": "800"}
    with start_broker(tmp_path / "kafka", fast_start=True, properties=slow) as broker:
        broker.kill()
        broker.start()


def test_a_node_alone_that_slept_leads_on(tmp_path: Path) -> None:
    """Its own controller would fence it when it wakes, and Kafka 4.3 then forgets transactions it was about to end."""
    with start_broker(tmp_path / "kafka", fast_start=True) as broker:
        Admin(broker.bootstrap).ensure([TopicWish("x", "written", 1)])
        before = leader_epoch(broker.bootstrap)
        BrokerStall(8.0).run(SimpleNamespace(broker=broker))  # type: ignore[arg-type]
        until = time.monotonic() + 3
        while time.monotonic() < until:
            assert leader_epoch(broker.bootstrap) == before
            time.sleep(0.1)


def leader_epoch(bootstrap: str) -> int:
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    (asked,) = client.list_offsets({TopicPartition("written", 0): OffsetSpec.latest()}, request_timeout=60).values()
    return int(asked.result().leader_epoch)


def stable(admin: Admin) -> bool:
    return admin.last_stable("written", PARTITIONS) == admin.high_watermarks("written", PARTITIONS)
