"""Tests of requests about Kafka's topics and groups, of the reaction to each error, and of every client's settings."""

from __future__ import annotations

import errno
import gc
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from sending import send
from topic_changes import set_config
from waiting import wait_for

from streamtrain import _native
from streamtrain._native import KafkaResponse
from streamtrain.broker import Broker
from streamtrain.errors import (
    KafkaBroken,
    KafkaDenied,
    KafkaSettling,
    KafkaUnreachable,
    StreamtrainError,
    TooManyOpenFiles,
    UserMistake,
)
from streamtrain.job.kafka_settings import OWNED
from streamtrain.job.librdkafka import accepts, properties
from streamtrain.kafka import library, renewing
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.error_codes import Heard, explain, is_passing, response_to
from streamtrain.kafka.lag import GroupLag
from streamtrain.kafka.reading_clients import Reading
from streamtrain.kafka.settings import Purpose, client_settings
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
    with pytest.raises(UserMistake, match=r"loses nothing: (.*compact); .*got 2.* loses the model; .*export") as error:
        admin.ensure(job_topics(other_job))
    _, *words = shlex.split(re.findall("(kafka-configs.sh .*=compact);", str(error.value))[0])
    assert words[:2] == ["--bootstrap-server", kafka.bootstrap] and f"{other_job}.snapshots" in words
    set_config(kafka.bootstrap, f"{other_job}.snapshots", dict([words[-1].split("=")]))
    with pytest.raises(UserMistake) as error:
        admin.ensure(job_topics(other_job))
    assert "cleanup.policy" not in str(error.value)
    assert f"{other_job}.records" not in admin.names(), "nothing is made when something is wrong"


def test_the_ends_of_several_topics_at_once(kafka: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, none = (kafka.fresh_name(name) for name in ("one", "two", "none"))
    admin = Admin(kafka.bootstrap)
    admin.ensure([TopicWish("x", one, 2), TopicWish("y", two, 1)])
    send(kafka.bootstrap, one, 3 * [{"value": b"x", "partition": 1}])
    ids = admin.topic_ids([one, two])
    expected = {one: (ids[one], [0, 3]), two: (ids[two], [0]), none: None}
    assert admin.ends([one, none, two]) == expected
    real, settling = admin._ask, [KafkaSettling("no leader")]

    def ask(what: str, question: Any) -> Any:
        if what.startswith("topics") and "," in what and questions and settling:
            raise settling.pop()  # a leader moves between the two questions
        questions.append(what)
        return real(what, question)

    questions: list[str] = []
    monkeypatch.setattr(admin, "_ask", ask)
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

    def list_topics(client: AdminClient, topic: str | None = None, *others: Any) -> Any:
        return ask(client, topic, *others) if topic else pytest.fail("all topics were asked for")

    monkeypatch.setattr(AdminClient, "list_topics", list_topics)
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
        output, _ = asking.communicate("enough\n", 60)
    assert asking.returncode == 0 and output in ("1\n", "0 1\n")


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
    send(kafka.bootstrap, topic, ({"value": b"x", "partition": partition} for partition in (0, 0, 0, 1)))
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
    assert lag._clients.client_count == 2


WAIT, MISSING, RENEW, REFUSE, DENIED = KafkaResponse


def test_no_collection_of_garbage_ends_an_administration_client() -> None:
    """A collection may run in the client's own thread, which sets the answers: librdkafka then aborts the process."""
    jobs_topics = Reading("localhost:1", {}, {})
    clients = [weakref.ref(admin._clients.client) for admin in (Admin("localhost:1"), jobs_topics.admin)]
    gc.disable()
    try:
        del jobs_topics
        assert [client() for client in clients] == [None, None]
    finally:
        gc.enable()


def test_every_code_of_the_table_has_the_name_librdkafka_gives_it_and_one_place() -> None:
    library.load()
    table = _native.kafka_responses()
    assert [name for code, name, _ in table if _native.kafka_error_name(code) != name] == []
    assert len({code for code, _, _ in table}) == len(table)
    assert {response for _, _, response in table} == set(KafkaResponse)


@pytest.mark.parametrize(
    ("code", "response"),
    [
        (KafkaError._TRANSPORT, WAIT), (KafkaError._TIMED_OUT, WAIT), (KafkaError.NOT_LEADER_FOR_PARTITION, WAIT),
        (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, WAIT), (KafkaError._UNKNOWN_PARTITION, MISSING),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, MISSING), (KafkaError._FENCED, RENEW), (KafkaError._FATAL, RENEW),
        (KafkaError.OFFSET_OUT_OF_RANGE, RENEW), (-100_000, RENEW), (KafkaError.MSG_SIZE_TOO_LARGE, REFUSE),
        (KafkaError.INVALID_CONFIG, REFUSE), (KafkaError._AUTHENTICATION, DENIED), (KafkaError._SSL, DENIED),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, DENIED),
    ],
)  # fmt: skip
def test_what_is_done_about_a_code(code: int, response: KafkaResponse) -> None:
    assert response_to(code) is response and is_passing(code) == (response in (WAIT, MISSING))


@pytest.mark.parametrize(
    ("code", "kind", "exit_code"),
    [
        (KafkaError._TRANSPORT, KafkaUnreachable, 3), (KafkaError._UNKNOWN_PARTITION, KafkaSettling, 3),
        (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaSettling, 3), (KafkaError._FATAL, KafkaBroken, 1),
        (KafkaError.MSG_SIZE_TOO_LARGE, StreamtrainError, 1), (KafkaError.INVALID_CONFIG, UserMistake, 2),
            (KafkaError._UNSUPPORTED_FEATURE, UserMistake, 2), (KafkaError._AUTHENTICATION, KafkaDenied, 2),
    ],
)  # fmt: skip
def test_our_error_for_a_code(code: int, kind: type[StreamtrainError], exit_code: int) -> None:
    error = explain(code, "text", "topic x", "host:1")
    assert type(error) is kind and error.exit_code == exit_code
    assert str(error).startswith("topic x: ") and "host:1" in str(error) and "text" in str(error)


PASSWORD = KafkaError(KafkaError._AUTHENTICATION, "wrong password")
HANDSHAKE = KafkaError(
    KafkaError._SSL, "SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?"
)
NO_FILE = KafkaError(KafkaError._TRANSPORT, f"Failed to create socket: {os.strerror(errno.EMFILE)} (after 0ms)")
ALL_DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")
AWAY = KafkaError(KafkaError._TRANSPORT, "disconnected")


@pytest.mark.parametrize(
    ("errors", "kind", "words"),
    [
        ([PASSWORD, ALL_DOWN], KafkaDenied, "wrong password"),
        ([PASSWORD, ALL_DOWN, AWAY], KafkaDenied, "wrong password"),
        ([HANDSHAKE], KafkaUnreachable, "PLAINTEXT broker listener"),
        ([NO_FILE], TooManyOpenFiles, "ulimit -n"),
    ],
)
def test_what_was_heard_explains_a_time_out(
    errors: list[KafkaError], kind: type[StreamtrainError], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until there is an answer, or for a minute."""

    def time_out() -> StreamtrainError:
        return explain(KafkaError._TIMED_OUT, "timed out", "topic x", "host:1", heard)

    for forget in (heard_an_answer, partial(a_minute_later, monkeypatch)):
        heard = Heard({})
        for error in errors:
            heard(error)
        assert type(time_out()) is kind and words in str(time_out())
        forget(heard)
        assert type(time_out()) is KafkaUnreachable and words not in str(time_out())


def heard_an_answer(heard: Heard) -> None:
    heard.clear()


def a_minute_later(patch: pytest.MonkeyPatch, heard: Heard) -> None:
    now_s = time.monotonic()
    patch.setattr(time, "monotonic", lambda: now_s + 61)


TABLE = _native.kafka_settings()


def test_a_client_has_one_value_of_each_which_librdkafka_takes_and_a_reason() -> None:
    pairs = [(name, purpose) for name, _, _, purposes, _ in TABLE for purpose in purposes]
    assert len(pairs) == len(set(pairs)) and {purpose for _, purpose in pairs} == set(Purpose)
    assert {name for name, *_ in TABLE} - set(properties()) == set()
    assert [(name, value) for name, value, *_ in TABLE if value is not None and not accepts(name, value)] == []
    assert [name for name, _, _, _, reason in TABLE if not reason] == []
    assert set(OWNED) == {name for name, _, hold, *_ in TABLE if hold == "owned"}


def test_the_users_come_first_where_they_may() -> None:
    given = {"fetch.wait.max.ms": "7", "isolation.level": "read_uncommitted", "sasl": {"username": "me"}}
    settings = client_settings(Purpose.FOLLOW, given, {"group.id": "mine"})
    assert (settings["fetch.wait.max.ms"], settings["isolation.level"]) == ("7", "read_committed")
    assert (settings["sasl.username"], settings["group.id"]) == ("me", "mine")
    assert client_settings(Purpose.ANSWERS, given)["fetch.wait.max.ms"] == "10"


@pytest.mark.parametrize("purpose", [purpose for purpose in Purpose if purpose not in (Purpose.ADMIN, Purpose.START)])
def test_no_client_reads_or_writes_other_than_exactly_once(purpose: Purpose) -> None:
    contrary = {"isolation.level": "read_uncommitted", "enable.idempotence": "false", "acks": "0"}
    settings = client_settings(purpose, contrary)
    side = {"isolation.level": "read_committed"}, {"enable.idempotence": "true", "acks": "all"}
    assert any(kept.items() <= settings.items() for kept in side), settings


def test_several_clients_share_the_memory_for_messages() -> None:
    name = "queued.max.messages.kbytes"
    alone = client_settings(Purpose.INGEST, {})
    of_four = client_settings(Purpose.INGEST, {}, clients=4)
    assert int(alone[name]) == 4 * int(of_four.pop(name)) and of_four.items() <= alone.items()
    assert client_settings(Purpose.INGEST, {name: 2048}, clients=64)[name] == "1024"


def test_who_makes_a_client_by_confluent_kafka_asks_the_table_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what its library has of its own."""
    calls: list[dict[str, object]] = []

    def opened(settings: dict[str, object], logger: object) -> object:
        calls.append(settings)
        raise AssertionError

    monkeypatch.setattr("streamtrain.kafka.admin.AdminClient", opened)
    with pytest.raises(AssertionError):
        Admin("b:1", {"client.id": "mine"}).names()
    ours = client_settings(Purpose.ADMIN, {"client.id": "mine"}, {"bootstrap.servers": "b:1"})
    assert ours["reconnect.backoff.max.ms"] == "1000" and len(ours) == 4
    assert ours.items() <= calls[0].items()
