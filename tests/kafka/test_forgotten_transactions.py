"""A Kafka that was killed in the midst of transactions finishes them when it is back, but for those it has forgotten:
they are aborted before a run publishes anything, as the next commit would make them visible.

Kafka 4.3 drops the end of a transaction for partitions without a leader: a single node fenced by its own controller.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from publisher import example_manifest
from waiting import wait_for

import streamtrain.broker.node as node
from streamtrain.background import in_background
from streamtrain.broker import Broker, start_broker
from streamtrain.broker.distribution import find_distribution
from streamtrain.broker.fencing import fenced
from streamtrain.broker.folder import load_record
from streamtrain.broker.node import start_node
from streamtrain.errors import KafkaBroken
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.reader import read
from streamtrain.kafka.transaction import Batch, Transactions, _Unknown
from streamtrain.run.held_job import HeldJob
from streamtrain.topics.chunks import Located
from streamtrain.topics.control import RunEntry
from streamtrain.topics.snapshots import publish
from streamtrain.topics.topic import TopicWish, job_topics
from tests.chaos.faults import BrokerStall, hold

pytestmark = pytest.mark.kafka

JOBS = [f"job{number}" for number in range(16)]  # each is caught between a commit and its end now and then
TIMEOUT_MS = 2_000
KILLS = 12


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    """One that is killed and comes back within its session without being fenced first."""
    monkeypatch.setattr(node, "crashed", lambda log: False)
    properties = {"broker.session.timeout.ms": "5000"}
    with start_broker(tmp_path / "kafka", fast_start=True, properties=properties) as broker:
        yield broker


class Writer(threading.Thread):
    """Commits one small transaction after the other in a name until it is told that Kafka is gone."""

    def __init__(self, bootstrap: str, name: str, topic: str, partitions: int, gone: threading.Event) -> None:
        super().__init__()
        self._settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap, "transactional.id": name, "transaction.timeout.ms": TIMEOUT_MS,
            "retry.backoff.ms": 1, "retry.backoff.max.ms": 20, "log_level": 0,
        }  # fmt: skip
        self._topic, self._partitions, self._gone = topic, partitions, gone
        self.committed: list[bytes] = []
        self.start()

    def run(self) -> None:
        while not self._gone.is_set():
            producer = confluent_kafka.Producer(self._settings)
            with suppress(KafkaException):  # a busy machine lets a transaction time out; the next producer goes on
                producer.init_transactions(20)
                while not self._gone.is_set():
                    value = uuid.uuid4().bytes
                    producer.begin_transaction()
                    for partition in range(self._partitions):
                        producer.produce(self._topic, value, partition=partition)
                    producer.commit_transaction(2)
                    self.committed.append(value)


def written_over_a_kill(broker: Broker, topics: Mapping[str, str], partitions: int = 1) -> dict[str, Writer]:
    """Writers by their names, each to a topic."""
    gone = threading.Event()
    writers = {name: Writer(broker.bootstrap, name, topic, partitions, gone) for name, topic in topics.items()}
    wait_for(lambda: min(len(writer.committed) for writer in writers.values()) >= 5, 600)
    broker.kill()
    gone.set()
    broker.start()
    for writer in writers.values():
        writer.join()
    return writers


@pytest.mark.full
@pytest.mark.parametrize("is_letter", [False, True], ids=["rounds", "letters"])
def test_what_kafka_has_forgotten_never_becomes_visible(broker: Broker, is_letter: bool) -> None:
    Admin(broker.bootstrap).ensure([wish for job in JOBS for wish in job_topics(job)])
    topics = {job: names(job)["dead_letters" if is_letter else "rounds"] for job in JOBS}
    for _ in range(KILLS):
        writers = written_over_a_kill(broker, topics)
        hold(4 * TIMEOUT_MS / 1000)  # time for the broker to end them
        admin = Admin(broker.bootstrap)  # one from before the crash may keep the leader's old epoch
        forgotten = [job for job in JOBS if not ends(admin, topics[job])]
        hidden = {job: admin.last_stable(topics[job], 1)[0] for job in forgotten}
        for job in JOBS:
            transactions(broker.bootstrap, job, admin).open()
            assert ends(admin, topics[job])
        for job, writer in writers.items():
            seen = visible(broker.bootstrap, topics[job])
            assert len(set(seen.values())) == len(seen)
            if job in hidden:  # the last commit was answered or not: nobody has seen it, nobody will
                assert max(seen) < hidden[job] and set(writer.committed[:-1]) <= set(seen.values())
            else:
                assert set(writer.committed) <= set(seen.values())
        if forgotten:
            return
    pytest.fail(f"Kafka ended every transaction of {KILLS} kills: nothing was tested")


def test_an_open_transaction_among_dead_letters_is_ended_if_it_is_ours_and_not_waited_for(kafka: Any) -> None:
    """Nobody can tell: letters that are written before anything else may be all that Kafka has forgotten to end."""
    job = kafka.fresh_name("letters")
    admin = Admin(kafka.bootstrap)
    admin.ensure(job_topics(job))
    letters = names(job)["dead_letters"]
    other = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{job}.other"})
    other.init_transactions(60)
    other.begin_transaction()
    other.produce(letters, b"another's", partition=0)
    assert other.flush(60) == 0
    begun = admin.high_watermarks(letters, 1)[0]
    held = transactions(kafka.bootstrap, job, admin)
    opened = in_background(held.open, name="open")
    assert opened.result(60).number == 1  # another's transaction goes on
    assert admin.high_watermarks(letters, 1)[0] > begun and not ends(admin, letters)
    other.commit_transaction(60)
    assert list(visible(kafka.bootstrap, letters).values()) == [b"another's"]


class Forgetful(HeldJob):
    """Shows of control and snapshots what was there before `forget`."""

    forgotten: str = ""

    def forget(self, what: str) -> None:
        self.shown = {"holder": super().holder(), "newest": super().newest()}
        self.forgotten = what

    def holder(self) -> RunEntry | None:
        return self.shown["holder"] if self.forgotten == "holder" else super().holder()

    def newest(self) -> Located | None:
        return self.shown["newest"] if self.forgotten == "newest" else super().newest()


@pytest.mark.parametrize("forgotten", ["holder", "newest", ""])
def test_a_run_leaves_whose_past_kafka_has_forgotten(kafka: Any, forgotten: str) -> None:
    """Of two commits without an end, the first answered, the second not: what goes before cannot be gone on from."""
    job = kafka.fresh_name("forgotten")
    admin = Admin(kafka.bootstrap)
    admin.ensure(job_topics(job))
    topics = Forgetful(job, {"bootstrap.servers": kafka.bootstrap}, names(job), admin)
    held = Transactions({"bootstrap.servers": kafka.bootstrap}, job, topics)
    held.open()
    held.publish(snapshot(job, 1))
    if forgotten == "holder":
        topics.forget(forgotten)
        held = Transactions({"bootstrap.servers": kafka.bootstrap}, job, topics)
        held.open()
    elif forgotten == "newest":
        topics.forget(forgotten)
        held.publish(snapshot(job, 2))
    make = held._transaction
    made = iter([no_answer])
    held._transaction = lambda batch: next(made, make)(batch)  # type: ignore[method-assign]
    with pytest.raises(KafkaBroken, match="forgotten") if forgotten else nullcontext():
        assert held.publish(snapshot(job, 3)) > 0


def no_answer(*_: object) -> int:
    raise _Unknown("no answer")


def snapshot(job: str, version: int) -> Batch:
    made = publish(example_manifest(version, job=job, kept=()), b"model", b"", 3, 24)
    return Batch([(f"{job}.snapshots", message) for message in made.messages], f"snapshot {version}", made.digest)


def ends(admin: Admin, topic: str, partitions: int = 1) -> bool:
    return admin.last_stable(topic, partitions) == admin.high_watermarks(topic, partitions)


def transactions(bootstrap: str, job: str, admin: Admin) -> Transactions:
    kafka = {"bootstrap.servers": bootstrap}
    return Transactions(kafka, job, HeldJob(job, kafka, names(job), admin))


def names(job: str) -> dict[str, str]:
    return {wish.key: wish.name for wish in job_topics(job)}


def visible(bootstrap: str, topic: str) -> dict[int, bytes | None]:
    """What a reader of committed messages is shown of the topic's first partition, by offset."""
    settings = {
        "bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }  # fmt: skip
    with KafkaConsumer(settings) as consumer:
        messages = read(consumer, topic, 0, *consumer.bounds(topic, 0))
        return {message.offset: message.value for message in messages}


PARTITIONS, WRITERS = 3, 6


@pytest.mark.full
def test_transactions_of_a_killed_kafka_end_when_it_is_back(tmp_path: Path) -> None:
    with start_broker(tmp_path / "kafka", fast_start=True) as broker:
        Admin(broker.bootstrap).ensure([TopicWish("x", "written", PARTITIONS)])
        for kill in range(2):
            written_over_a_kill(broker, {f"{kill}-{number}": "written" for number in range(WRITERS)}, PARTITIONS)
            admin = Admin(broker.bootstrap)  # one from before the crash may keep the leader's old epoch
            wait_for(lambda admin=admin: ends(admin, "written", PARTITIONS), 600)


@pytest.mark.full
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


@pytest.mark.full
def test_a_start_waits_until_the_fencing_is_written(tmp_path: Path) -> None:
    """Were it lost, a broker that comes back would be refused until its session of before ends."""
    slow = {"broker.session.timeout.ms": "600000", "controller.quorum.append.linger.ms": "800"}
    with start_broker(tmp_path / "kafka", fast_start=True, properties=slow) as broker:
        broker.kill()
        broker.start()


@pytest.mark.full
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
