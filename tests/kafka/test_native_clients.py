"""The native consumer and producer against a real broker, and reading to an end or without one."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from functools import partial
from itertools import count, islice
from types import SimpleNamespace
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from sending import send
from waiting import wait_for

from streamtrain import _native
from streamtrain._native import KafkaCode, KafkaEnding, KafkaOutcome
from streamtrain.errors import KafkaUnreachable, StreamtrainError, UserMistake
from streamtrain.kafka import library
from streamtrain.kafka import reader as reading
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer, Message, TransactionalProducer
from streamtrain.kafka.settings import Purpose
from streamtrain.topics.topic import TopicWish

FAST = {"retry.backoff.ms": "1", "retry.backoff.max.ms": "20"}


@pytest.fixture
def topic(kafka: Any) -> str:
    return str(kafka.new_topic("native", 2))


@pytest.fixture
def consumer(kafka: Any) -> Iterator[KafkaConsumer]:
    with KafkaConsumer.open(Purpose.INGEST, {"bootstrap.servers": kafka.bootstrap}) as it:
        yield it


def transactional(kafka: Any, name: str) -> TransactionalProducer:
    producer = TransactionalProducer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name, **FAST})
    wait_for(lambda: producer.native.prepare().code == 0)
    return producer


def read_to_end(consumer: KafkaConsumer, topic: str, partitions: int = 2) -> tuple[list[Message], list[Message]]:
    """(records, end-of-partition messages) of the whole topic."""
    consumer.assign(topic, [(p, 0) for p in range(partitions)])
    seen: list[Message] = []
    wait_for(
        lambda: (
            seen.extend(consumer.consume(100, 0.1))
            or sum(m.error == KafkaCode.PARTITION_EOF for m in seen) == partitions
        )
    )
    return [m for m in seen if not m.error], [m for m in seen if m.error]


def test_reads_what_a_python_producer_wrote(kafka: Any, topic: str, consumer: KafkaConsumer) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True})
    headers: list[tuple[str, str | bytes | None]] = [("a", b"1"), ("a", b""), ("n", None)]
    producer.produce(topic, b"value", b"key", partition=0, timestamp=1_700_000_000_123, headers=headers)
    producer.produce(topic, None, None, partition=0, timestamp=5)
    producer.produce(topic, b"", b"", partition=0, timestamp=6)
    producer.produce(topic, b"other", partition=1)
    assert producer.flush(20) == 0
    records, ends = read_to_end(consumer, topic)
    first = sorted(m for m in records if m.partition == 0)
    assert first == [
        Message(0, 0, 1_700_000_000_123, b"key", b"value", [("a", b"1"), ("a", b""), ("n", None)], 0, ""),
        Message(0, 1, 5, None, None, [], 0, ""),
        Message(0, 2, 6, b"", b"", [], 0, ""),
    ]
    assert [m.value for m in records if m.partition == 1] == [b"other"]
    assert sorted((m.partition, m.offset) for m in ends) == [(0, 3), (1, 1)]
    assert consumer.native.position([0, 1]) == [(0, 3), (1, 1)]


def test_starts_at_the_offset_it_is_given_and_seeks(kafka: Any, topic: str, consumer: KafkaConsumer) -> None:
    with closing(_native.KafkaProducer([("bootstrap.servers", kafka.bootstrap)])) as producer:
        for i in range(10):
            assert producer.produce(topic, str(i).encode(), partition=0) == 0
        assert producer.flush(20_000) == 0
    consumer.assign(topic, [(0, 7)])
    assert wait_for(lambda: consumer.consume(1, 0.2))[0].value == b"7"
    consumer.native.seek([(0, 2)], 10_000)
    assert wait_for(lambda: consumer.consume(1, 0.2))[0].value == b"2"
    consumer.native.pause([0])
    assert [m for m in consumer.consume(100, 0.3) if not m.error] == []
    consumer.native.resume([0])
    assert wait_for(lambda: consumer.consume(1, 0.2))[0].value == b"3"


def test_a_consumer_whose_partitions_are_paused_is_not_deaf(kafka: Any, topic: str, consumer: KafkaConsumer) -> None:
    send(kafka.bootstrap, topic, [{"value": b"waits", "partition": 0}])
    consumer.assign(topic, [(0, 0)])
    consumer.native.pause([0])
    for _ in range(2):  # a look compares with the one before
        assert consumer.consume(1, 5.5) == []
        assert not consumer.native.is_deaf(60_000)
    consumer.native.resume([0])
    assert [message.value for message in read_to_end(consumer, topic, 1)[0]] == [b"waits"]


def test_topic_facts(kafka: Any, topic: str, consumer: KafkaConsumer) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    described = admin.describe_topics(confluent_kafka.TopicCollection([topic]))[topic].result(20)
    assert consumer.native.topic_id(topic, 10_000) == str(described.topic_id)
    assert consumer.partition_count(topic) == 2
    with pytest.raises(StreamtrainError, match="nowhere"):
        consumer.partition_count("nowhere-" + topic)


def test_read_committed_hides_what_was_aborted_or_is_open(kafka: Any, topic: str, consumer: KafkaConsumer) -> None:
    with transactional(kafka, topic) as producer:
        for value, end, ending in (
            (b"kept", producer.native.commit, KafkaEnding.COMMITTED),
            (b"gone", partial(producer.native.abort, "a test"), KafkaEnding.ABORTED),
        ):
            assert producer.native.begin().code == 0
            assert producer.produce(topic, value, b"k", partition=0, note=True) == 0
            assert producer.native.flush() == 0
            assert end().ending is ending
        assert producer.native.noted_offset == 2
        assert producer.native.begin().code == 0
        assert producer.produce(topic, b"open", partition=1) == 0
        assert producer.native.flush() == 0
        assert consumer.native.watermarks(topic, 1, 10_000) == (0, 0)  # the last stable offset, not the high watermark
        records, ends = read_to_end(consumer, topic)
    assert [m.value for m in records] == [b"kept"]
    assert sorted((m.partition, m.offset) for m in ends) == [(0, 4), (1, 0)]  # two records and two control records


def test_offsets_go_with_the_transaction(kafka: Any, topic: str) -> None:
    group = {"bootstrap.servers": kafka.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    with transactional(kafka, topic) as producer, KafkaConsumer(group) as member:
        native = producer.native
        assert native.begin().code == 0
        producer.produce(topic, b"1", partition=0)
        producer.produce(topic, b"2", partition=0)
        assert native.commit().ending is KafkaEnding.COMMITTED
        member.native.subscribe(topic)
        got: list[Message] = []
        wait_for(lambda: got.extend(member.consume(10, 0.2)) or len(got) == 2)
        assert native.begin().code == 0
        end = native.commit(topic, [(0, 1)], member.native.group_metadata())
        assert end.ending is KafkaEnding.COMMITTED, end.why.text
        assert member.native.committed([0], 10_000) == [(0, 1)]
        member.native.rewind_to_committed(-2, 10_000)
        assert wait_for(lambda: member.consume(1, 0.2))[0].value == b"2"


def test_fenced_producer_says_so(kafka: Any, topic: str) -> None:
    with transactional(kafka, topic) as old:
        assert old.native.begin().code == 0
        old.produce(topic, b"mute", partition=0)
        assert old.native.flush() == 0
        with transactional(kafka, topic):
            end = old.native.commit()
        assert _native.kafka_error_name(end.why.code) == "_FENCED"
        assert end.ending is KafkaEnding.UNKNOWN and end.why.fatal
        assert any(event.level == 2 for event in old.events())
        with pytest.raises(RuntimeError, match="given up"):
            old.produce(topic, b"mute", partition=0)
        native = old.native  # which ends nothing
        assert native.begin().fatal
        for end in (native.commit(), native.abort("a test"), native.fail(KafkaOutcome(-1, requires_abort=True))):
            assert end.ending is KafkaEnding.UNKNOWN
        assert native.prepare().code == 0 and native.begin().code == 0


def test_broker_that_is_not_there(topic: str) -> None:
    with closing(socket.socket()) as taken:  # bound, never listening: a port nobody can answer on
        taken.bind(("127.0.0.1", 0))
        bootstrap = f"127.0.0.1:{taken.getsockname()[1]}"
        with KafkaConsumer.open(Purpose.INGEST, {"bootstrap.servers": bootstrap}) as consumer:
            consumer.assign(topic, [(0, 0)])
            down = KafkaCode.ALL_BROKERS_DOWN
            wait_for(lambda: consumer.consume(1, 0.1) or down in [event.code for event in consumer.events()])
            with pytest.raises(KafkaUnreachable):
                consumer.partition_count(topic, 1)


def test_records_that_cannot_be_delivered_are_reported(topic: str) -> None:
    library.load()
    settings = [("bootstrap.servers", "127.0.0.1:1"), ("message.timeout.ms", "200")]
    with closing(_native.KafkaProducer(settings)) as producer:
        assert producer.produce(topic, b"lost") == 0
        said: list[str] = []

        def is_reported() -> bool:
            producer.poll(100)
            said.extend(event[2] for event in producer.drain_events())
            return "DELIVERY" in said

        wait_for(is_reported)
        assert said.count("DELIVERY") == 1


def test_a_bad_setting_is_the_users_mistake_and_a_closed_client_refuses() -> None:
    with pytest.raises(UserMistake, match="nonsense"):
        KafkaConsumer({"nonsense": 1})
    with pytest.raises(UserMistake, match="acks"):
        KafkaConsumer({"producer": {"acks": "many"}, "acks": "many"})
    with pytest.raises(UserMistake, match=r"transaction\.timeout\.ms"):
        TransactionalProducer({"transactional.id": "x", "transaction.timeout.ms": "long"})
    consumer = KafkaConsumer({"group.id": "x"})
    for _ in range(2):
        consumer.close()
    with pytest.raises(RuntimeError, match="closed"):
        consumer.consume()


def test_group_members_share_and_hand_over(kafka: Any, topic: str) -> None:
    group = {"bootstrap.servers": kafka.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    with KafkaConsumer(group) as first:
        first.native.subscribe(topic)
        wait_for(lambda: (first.consume(1, 0.1), len(first.native.assignment()) == 2)[1])  # may hear an error first
        with KafkaConsumer(group) as second:
            second.native.subscribe(topic)
            wait_for(
                lambda: (
                    (first.consume(1, 0.05), second.consume(1, 0.05))
                    and len(first.native.assignment()) == len(second.native.assignment()) == 1
                )
            )
        wait_for(lambda: (first.consume(1, 0.1), len(first.native.assignment()) == 2)[1])


@pytest.fixture
def client(kafka: Any) -> Iterator[KafkaConsumer]:
    with KafkaConsumer.open(Purpose.READ, {"bootstrap.servers": kafka.bootstrap}, "reading") as opened:
        yield opened


@pytest.fixture
def filled(kafka: Any) -> str:
    """Three messages in the first of two partitions, one in the other."""
    name = str(kafka.fresh_name("reading"))
    Admin(kafka.bootstrap).ensure([TopicWish("x", name, 2)])
    values = (0, b"a"), (0, b"b"), (0, b"c"), (1, b"d")
    send(kafka.bootstrap, name, ({"partition": partition, "value": value} for partition, value in values))
    return name


@pytest.mark.parametrize(
    ("spans", "looks", "expected"),
    [
        ({0: (1, 2), 1: (0, 1)}, None, [b"b", b"d"]),
        ({0: (3, 3), 1: (1, 1)}, None, []),
        ({0: (0, None), 1: (0, None)}, 5, [b"a", b"b", b"c", b"d"]),
        ({0: (1, 2), 1: (0, None)}, 5, [b"b", b"d"]),
    ],
    ids=["from starts to ends", "nothing", "without ends until it is stopped", "one to its end, one for ever"],
)
def test_what_is_read(
    client: KafkaConsumer, filled: str, spans: Any, looks: int | None, expected: list[bytes], monkeypatch: Any
) -> None:
    """After all is read, much time passes at each look: a partition without an end is still no reason to give up."""
    found: list[bytes] = []
    clock, looked = [0.0], count()
    monkeypatch.setattr(reading, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + clock[0]))

    def stop() -> bool:
        if looks is None or len(found) < len(expected):
            return False
        clock[0] += 100
        return next(looked) >= looks

    for message in reading.read_all(client, filled, spans, stop):
        found.append(message.value or b"")
    assert sorted(found) == expected


def test_an_end_that_is_not_reached_is_said(client: KafkaConsumer, filled: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(reading, "TIMEOUT_S", 1.0)
    stop = iter([False] * 600)  # a minute
    with pytest.raises(KafkaUnreachable, match=r"up to offset 9 of partition 0, no"):
        list(reading.read_all(client, filled, {0: (0, 9), 1: (0, 1)}, lambda: next(stop, True)))


def test_a_slow_caller_gets_them_all_and_a_silent_broker_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay trains between two messages, an hour here; a look that finds none takes its time-out."""
    now_s = [0.0]
    monkeypatch.setattr(reading, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    for last, end in ((4, nullcontext()), (3, pytest.raises(KafkaUnreachable, match="up to offset 5"))):
        messages = iter([Message(0, at, 0, None, b"", [], 0, "") for at in range(last + 1)])

        def consume(capacity: int, timeout_s: float, messages: Iterator[Message] = messages) -> list[Message]:
            now_s[0] += timeout_s
            return list(islice(messages, 1))

        client: Any = SimpleNamespace(assign=lambda *_: None, consume=consume)
        found = []
        with end:
            for message in reading.read(client, "filled", 0, 0, 5):
                found.append(message.offset)
                now_s[0] += 3600
        assert found == list(range(last + 1))
