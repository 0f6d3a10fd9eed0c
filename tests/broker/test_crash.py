"""A Kafka that was killed in the midst of transactions finishes them when it is back."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaException, TopicPartition
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

pytestmark = [pytest.mark.kafka, pytest.mark.full]

PARTITIONS, WRITERS, KILLS = 3, 6, 2


class Writers:
    """Producers that commit one small transaction after the other until they are told that Kafka is gone."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self._settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap, "transaction.timeout.ms": 2_000, "retry.backoff.ms": 1,
            "retry.backoff.max.ms": 20, "log_level": 0,
        }  # fmt: skip
        self._name = name
        self._gone = threading.Event()
        self.committed = [0] * WRITERS
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)]
        for thread in self._threads:
            thread.start()

    def _write(self, number: int) -> None:
        while not self._gone.is_set():
            producer = confluent_kafka.Producer({**self._settings, "transactional.id": f"{self._name}-{number}"})
            try:
                producer.init_transactions(20)
                while not self._gone.is_set():
                    producer.begin_transaction()
                    for partition in range(PARTITIONS):
                        producer.produce("written", b"x", partition=partition)
                    producer.commit_transaction(2)
                    self.committed[number] += 1
            except KafkaException:  # a busy machine lets a transaction time out; the next producer goes on
                continue

    def tell_gone(self) -> None:
        self._gone.set()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


def test_transactions_of_a_killed_kafka_end_when_it_is_back(tmp_path: Path) -> None:
    with start_broker(tmp_path / "kafka", fast_start=True) as broker:
        Admin(broker.bootstrap).ensure([TopicWish("x", "written", PARTITIONS)])
        for kill in range(KILLS):
            writers = Writers(broker.bootstrap, str(kill))
            wait_for(lambda writers=writers: min(writers.committed) >= 5, 600)
            broker.kill()
            writers.tell_gone()
            broker.start()
            writers.join()
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
