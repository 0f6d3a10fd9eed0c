"""Topics made and compared on a real Kafka; a missing broker said in time; the lag of a group, seen from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from waiting import wait_for

from streamtrain.broker import Broker
from streamtrain.errors import KafkaSettling, KafkaUnreachable, UserMistake
from streamtrain.kafka import renewing
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.lag import GroupLag
from streamtrain.topics.topic import TopicWish, job_topics
from tests.chaos.faults import hold


def test_a_jobs_topics_are_made_once_and_then_compared(kafka: Any) -> None:
    job = kafka.fresh_name("admin")
    admin = Admin(kafka.bootstrap)
    wishes = job_topics(job, {"records": {"partitions": 2}, "dead-letters": {"name": f"{job}-bad"}})
    assert {change.action for change in admin.ensure(wishes, dry_run=True)} == {"would create"}
    assert f"{job}.records" not in admin.names()
    assert {change.action for change in admin.ensure(wishes)} == {"created"}
    again = admin.ensure(wishes)
    assert {(change.action, change.differences) for change in again} == {("exists", ())}
    state = admin.describe([f"{job}.snapshots", f"{job}-bad"])
    assert state[f"{job}.snapshots"].cleanup_policy == "compact" and state[f"{job}-bad"].partitions == 1  # type: ignore[union-attr]
    other = admin.ensure(job_topics(job, {"records": {"partitions": 3}, "rounds": {"config": {"retention.ms": 5}}}))
    differences = {change.wish.key: change.differences for change in other if change.differences}
    assert differences["records"] == ("partitions: expected 3, got 2",)
    assert differences["rounds"] == ("retention.ms: expected 5, got the default",)
    other_job = kafka.fresh_name("admin")
    admin.ensure([TopicWish("x", f"{other_job}.snapshots", 2, config={"cleanup.policy": "delete"})])
    with pytest.raises(UserMistake, match=r"cleanup.policy=compact, got delete.*expected 1 partition, got 2"):
        admin.ensure(job_topics(other_job))
    assert f"{other_job}.records" not in admin.names(), "nothing is made when something is wrong"


def test_the_ends_of_several_topics_at_once(kafka: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, none = (kafka.fresh_name(name) for name in ("one", "two", "none"))
    admin = Admin(kafka.bootstrap)
    admin.ensure([TopicWish("x", one, 2), TopicWish("y", two, 1)])
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for _ in range(3):
        producer.produce(one, b"x", partition=1)
    assert producer.flush(60) == 0
    ids = admin.topic_ids([one, two])
    expected = {one: (ids[one], [0, 3]), two: (ids[two], [0]), none: None}
    assert admin.ends([one, none, two]) == expected
    real, settling = admin._ask, [KafkaSettling("no leader")]

    def asked(what: str, question: Any) -> Any:
        if what.startswith("topics") and "," in what and asked_before and settling:
            raise settling.pop()  # a leader moves between the two questions
        asked_before.append(what)
        return real(what, question)

    asked_before: list[str] = []
    monkeypatch.setattr(admin, "_ask", asked)
    assert admin.ends([one, two]) == {one: expected[one], two: expected[two]} and not settling


def test_what_could_not_be_made_is_absent(kafka: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that would refuse to make a topic has looked for it first: more copies than there are brokers."""
    there, nowhere = kafka.fresh_name("there"), kafka.fresh_name("nowhere")
    admin = Admin(kafka.bootstrap)
    admin.ensure([TopicWish("x", there, 1)])
    monkeypatch.setattr("streamtrain.kafka.admin.NewTopic", lambda name, partitions: NewTopic(name, partitions, 99))
    assert admin.absent(nowhere) is True
    assert admin.absent(there) is False
    assert admin.describe([nowhere]) == {nowhere: None}


def test_what_a_job_asks_costs_the_same_however_many_topics_there_are(
    kafka: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of all are asked for by who wants all: 50 ms of processor time at 2,000, at each start and scrape."""
    name = kafka.fresh_name("one-of-many")
    ask = AdminClient.list_topics

    def asked(client: AdminClient, topic: str | None = None, *others: Any) -> Any:
        return ask(client, topic, *others) if topic else pytest.fail("all topics were asked for")

    monkeypatch.setattr(AdminClient, "list_topics", asked)
    admin = Admin(kafka.bootstrap)
    admin.ensure([TopicWish("x", name, 1)])
    assert admin.spans(name) == [(0, 0)] and admin.topic_ids([name])[name] and admin.broker_count() >= 1


ASKING = """
import select, sys
from streamtrain.kafka.admin import Admin
from streamtrain.errors import KafkaUnreachable
admin, counts = Admin(sys.argv[1]), set()
while not select.select([sys.stdin], [], [], 0.005)[0]:
    try:
        counts.add(admin.broker_count())
    except KafkaUnreachable:
        pass
print(*sorted(counts))
"""


@pytest.mark.full
def test_a_broker_that_has_just_been_fenced_ends_no_process(private_kafka: Callable[..., Broker]) -> None:
    """It tells of no broker at all, not of itself, until its controller hears of it again."""
    broker = private_kafka(properties={"broker.session.timeout.ms": "3000"})
    command = [sys.executable, "-c", ASKING, broker.bootstrap]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asking:
        for _ in range(3):
            os.kill(broker.pids[0], signal.SIGSTOP)
            hold(4)
            os.kill(broker.pids[0], signal.SIGCONT)
            hold(2)
        told, _ = asking.communicate("enough\n", 60)
    assert asking.returncode == 0 and told in ("1\n", "0 1\n")


def test_offsets_and_ids(kafka: Any) -> None:
    name = kafka.fresh_name("offsets")
    admin = Admin(kafka.bootstrap)
    admin.ensure([TopicWish("x", name, 2)])
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name})
    producer.init_transactions(10)
    producer.begin_transaction()
    for stamp in (1000, 2000, 3000):
        producer.produce(name, b"x", partition=1, timestamp=stamp)
    producer.flush(10)
    assert admin.last_stable(name, 2) == [0, 0]
    assert admin.high_watermarks(name, 2) == [0, 3]
    producer.commit_transaction(10)
    wait_for(lambda: admin.last_stable(name, 2) == [0, 4])  # the commit's answer comes before its markers are written
    assert admin.earliest(name, 2) == [0, 0]
    assert admin.at_time(name, 2, 1500) == [0, 1]
    assert admin.at_time(name, 2, 2**42) == [0, 4]
    ids = admin.topic_ids([name, name + "-missing"])
    assert len(ids[name] or "") == 22 and ids[name + "-missing"] is None
    with pytest.raises(UserMistake, match="expected it in Kafka"):
        admin.last_stable(name + "-missing", 1)


def test_no_broker_is_said_within_ten_seconds() -> None:
    begun = time.monotonic()
    with pytest.raises(KafkaUnreachable, match=r"127\.0\.0\.1:9"):
        Admin("127.0.0.1:9").ensure(job_topics("job"))
    assert time.monotonic() - begun < 60  # 8 s, on a busy machine
    with pytest.raises(UserMistake, match="nonsense"):
        Admin("127.0.0.1:9", {"nonsense": 1})


def test_what_a_group_has_not_passed(kafka: Any) -> None:
    topic = kafka.fresh_name("lag")
    Admin(kafka.bootstrap).ensure([TopicWish("x", topic, 2)])
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for partition in (0, 0, 0, 1):
        producer.produce(topic, b"x", partition=partition)
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": topic})
    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    consumer.close()
    assert GroupLag({"bootstrap.servers": kafka.bootstrap}, topic, topic, 60).ask() == {0: 1, 1: 1}


def test_a_client_that_is_silent_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewing, "_DEAF_S", 0.0)
    lag = GroupLag({"bootstrap.servers": "127.0.0.1:9"}, "group", "topic", 0.1)
    for _ in range(2):
        with pytest.raises(KafkaUnreachable):
            lag.ask()
    assert lag._clients.made == 2
