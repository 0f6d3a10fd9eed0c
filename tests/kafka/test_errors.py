"""The one table of Kafka's error codes, and our errors for them."""

from __future__ import annotations

import errno
import os
import time

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
from streamtrain.kafka import library
from streamtrain.kafka.errors import Heard, explain, is_passing, response_to

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


def test_a_time_out_after_a_refused_password_is_a_refused_password() -> None:
    heard = Heard()
    heard(KafkaError(KafkaError._AUTHENTICATION, "wrong password"))
    heard(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    error = explain(KafkaError._TIMED_OUT, "timed out", "topic x", "host:1", heard)
    assert type(error) is KafkaDenied and "wrong password" in str(error)
    heard(KafkaError(KafkaError._TRANSPORT, "disconnected"))
    assert type(explain(KafkaError._TIMED_OUT, "timed out", "topic x", "host:1", heard)) is KafkaDenied
    heard.clear()
    assert type(explain(KafkaError._TIMED_OUT, "timed out", "topic x", "host:1", heard)) is KafkaUnreachable


def test_a_broker_that_leaves_a_tls_handshake_is_away() -> None:
    heard = Heard()
    heard(KafkaError(KafkaError._SSL, "SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?"))
    error = explain(KafkaError._TIMED_OUT, "timed out", "topic x", "host:1", heard)
    assert type(error) is KafkaUnreachable and "PLAINTEXT broker listener" in str(error)


def test_a_process_that_may_open_no_more_files_is_told_so() -> None:
    heard = Heard()
    heard(KafkaError(KafkaError._TRANSPORT, f"Failed to create socket: {os.strerror(errno.EMFILE)} (after 0ms)"))
    error = explain(KafkaError._TIMED_OUT, "timed out", "topic x", "host:1", heard)
    assert type(error) is TooManyOpenFiles and error.exit_code == 1 and "ulimit -n" in str(error)


@pytest.mark.parametrize("forgets", ["answer", "time"])
def test_what_was_heard_long_ago_explains_nothing(forgets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard()
    heard(KafkaError(KafkaError._TRANSPORT, f"Failed to create socket: {os.strerror(errno.EMFILE)} (after 0ms)"))
    if forgets == "answer":
        heard.clear()
    else:
        now_s = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now_s + 61)
    error = explain(KafkaError._TIMED_OUT, "timed out", "topic x", "host:1", heard)
    assert type(error) is KafkaUnreachable and os.strerror(errno.EMFILE) not in str(error)
