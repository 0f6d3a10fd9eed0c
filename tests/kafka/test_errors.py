"""The one table of Kafka's error codes, and the one of what we set of librdkafka."""

from __future__ import annotations

import errno
import os
import time
from functools import partial

import pytest
from confluent_kafka import KafkaError

from streamtrain import _native
from streamtrain._native import KafkaResponse
from streamtrain.errors import (
    KafkaBroken,
    KafkaDenied,
    KafkaSettling,
    KafkaUnreachable,
    StreamtrainError,
    TooManyOpenFiles,
)
from streamtrain.job.kafka_settings import OWNED
from streamtrain.job.librdkafka import accepts, properties
from streamtrain.kafka import library
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.errors import Heard, explain, is_passing, response_to
from streamtrain.kafka.settings import Purpose, client_settings

WAIT, MISSING, RENEW, REFUSE, DENIED = KafkaResponse


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
        (KafkaError.MSG_SIZE_TOO_LARGE, StreamtrainError, 1), (KafkaError._AUTHENTICATION, KafkaDenied, 2),
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
        heard = Heard()
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
    made: list[dict[str, object]] = []

    def opened(settings: dict[str, object], logger: object) -> object:
        made.append(settings)
        raise AssertionError

    monkeypatch.setattr("streamtrain.kafka.admin.AdminClient", opened)
    with pytest.raises(AssertionError):
        Admin("b:1", {"client.id": "mine"}).names()
    ours = client_settings(Purpose.ADMIN, {"client.id": "mine"}, {"bootstrap.servers": "b:1"})
    assert ours["reconnect.backoff.max.ms"] == "1000" and len(ours) == 3
    assert ours.items() <= made[0].items()
