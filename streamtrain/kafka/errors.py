"""What Kafka's error codes mean for whoever asked: our errors for them, by the one table, native/kafka/response.cpp."""

from __future__ import annotations

import errno
import os
import time

from confluent_kafka import KafkaError

from streamtrain import _native
from streamtrain._native import KafkaCode, KafkaResponse
from streamtrain.errors import (
    KafkaBroken,
    KafkaDenied,
    KafkaSettling,
    KafkaUnreachable,
    StreamtrainError,
    TooManyOpenFiles,
    UserMistake,
)
from streamtrain.log import librdkafka_logger

_REMEMBERED_S = 60.0  # librdkafka says an error that goes on again after 30 s


def response_to(code: int) -> KafkaResponse:
    return _native.kafka_response(code)


def is_passing(code: int) -> bool:
    """Whether time alone may mend it."""
    return _native.kafka_is_passing(code)


class Heard:
    """The last error of a client that came beside its answers: what a time-out does not tell.

    As confluent_kafka's `error_cb` it logs each. None is left after an answer (`clear`), nor after a minute.
    """

    def __init__(self) -> None:
        self.clear()

    @property
    def code(self) -> int:
        return self._code if self._is_recent() else 0

    @property
    def text(self) -> str:
        return self._text if self._is_recent() else ""

    def _is_recent(self) -> bool:
        return time.monotonic() - self._heard_s < _REMEMBERED_S

    def __call__(self, error: KafkaError) -> None:
        self.take(error.code(), error.str())
        librdkafka_logger().error(error.str())

    def take(self, code: int, text: str) -> None:
        """`code` 0: a line of its log, which an error outweighs."""
        if code == KafkaCode.ALL_BROKERS_DOWN or (code == 0 and self.code):
            return  # says less than what it follows
        if response_to(self.code) is KafkaResponse.DENIED and is_passing(code):
            return  # a handshake that failed is also told as a connection that was lost
        # a broker that goes away in a TLS handshake is no mistake of the user's
        gone = code == KafkaCode.SSL and "Disconnected" in text
        self._code, self._text, self._heard_s = KafkaCode.TRANSPORT if gone else code, text, time.monotonic()

    def clear(self) -> None:
        self._code, self._text, self._heard_s = 0, "", float("-inf")


def no_such_topic(name: str, bootstrap: str) -> UserMistake:
    """What is raised where the controller knows no topic `name`."""
    return UserMistake(
        f"topic {name}: expected it in Kafka at {bootstrap}, found none; check the job's name and the address, or make "
        "its topics with 'streamtrain topics create JOB.toml'"
    )


def explain(code: int, text: str, what: str, bootstrap: str, heard: Heard | None = None) -> StreamtrainError:
    """Our error for one of Kafka's at `bootstrap`, while `what` was asked; `heard` by the same client meanwhile."""
    response = response_to(code)
    said = f"; {heard.text}" if heard is not None and heard.text else ""
    if is_passing(code) and heard is not None and response_to(heard.code) is KafkaResponse.DENIED:
        response, text = KafkaResponse.DENIED, heard.text
    elif is_passing(code) and os.strerror(errno.EMFILE) in said:
        return TooManyOpenFiles(
            f"{what}: expected to open a connection to Kafka at {bootstrap}, got: {os.strerror(errno.EMFILE)}; "
            "let this process open more (ulimit -n, LimitNOFILE=)"
        )
    elif is_passing(code):
        kind = KafkaSettling if code > 0 or response is KafkaResponse.MISSING else KafkaUnreachable
        return kind(
            f"{what}: expected an answer from Kafka at {bootstrap}, got none ({text}{said}); "
            "check the address and that the broker runs (streamtrain broker start)"
        )
    if response is KafkaResponse.DENIED:
        return KafkaDenied(
            f"{what}: Kafka at {bootstrap} does not let this user in: {text}; "
            "check security.protocol, the certificates and the user's name, password and rights in [kafka]"
        )
    broken = response is KafkaResponse.RENEW
    return (KafkaBroken if broken else StreamtrainError)(
        f"{what}: Kafka at {bootstrap} refused: {text}{said} ({_native.kafka_error_name(code)})"
    )
