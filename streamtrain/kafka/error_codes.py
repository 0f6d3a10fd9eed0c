"""The meaning of Kafka's error codes for the caller: our errors, by the one table, native/kafka/response.cpp."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Mapping

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
from streamtrain.kafka.library import load
from streamtrain.kafka.listener import speaks_otherwise
from streamtrain.log import librdkafka_logger

_FOR_GOOD = (KafkaResponse.DENIED, KafkaResponse.REFUSE)  # time does not mend them
_UNSUPPORTED = "Required feature not supported by broker"  # librdkafka asks on, and only its log says so
_ALERT = re.compile("alert (bad certificate|unsupported certificate|certificate [a-z]+|unknown ca|access denied)")
_CONFIGURED = (  # what the user has set, or where
    KafkaError.INVALID_CONFIG, KafkaError.INVALID_PARTITIONS, KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.INVALID_TRANSACTION_TIMEOUT, KafkaError.POLICY_VIOLATION, KafkaError.UNSUPPORTED_VERSION,
)  # fmt: skip
_REMEMBERED_S = 60.0  # librdkafka says an error that goes on again after 30 s


def response_to(code: int) -> KafkaResponse:
    return _native.kafka_response(code)


def is_passing(code: int) -> bool:
    """Returns whether the error with this code may go away with time alone."""
    return _native.kafka_is_passing(code)


class Heard:
    """The last error of a client that came beside its answers: what a time-out does not tell.

    As confluent_kafka's `error_cb` and `logger` it logs each. None is left after an answer (`clear`), nor after a
    minute. `settings`: the client's.
    """

    def __init__(self, settings: Mapping[str, object]) -> None:
        self.protocol = str(settings.get("security.protocol", "PLAINTEXT")).upper()
        self.clear()
        self._has_answered = False

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

    def log(self, level: int, form: str, *parts: object) -> None:
        """A line of librdkafka's own log."""
        librdkafka_logger().log(level, form, *parts)
        if _UNSUPPORTED in (text := form % parts):
            self.take(0, text)

    def other_protocol(self, bootstrap: str) -> str | None:
        """The security.protocol of the listener there, where it is another than this client's, which had no answer."""
        return None if self._has_answered else speaks_otherwise(bootstrap, self.protocol)

    def take(self, code: int, text: str) -> None:
        """`code` 0: a line of its log, which an error outweighs."""
        if code == 0 and _UNSUPPORTED in text:
            code = KafkaError._UNSUPPORTED_FEATURE
        if code == KafkaCode.ALL_BROKERS_DOWN or (code == 0 and self.code):
            return  # says less than what it follows
        if response_to(self.code) in _FOR_GOOD and is_passing(code):
            return  # a handshake that failed is also told as a connection that was lost
        # a broker that goes away in a TLS handshake is no mistake of the user's
        if code == KafkaCode.SSL and "Disconnected" in text:
            code = KafkaCode.TRANSPORT
        elif _ALERT.search(text):  # with TLS 1.3 it comes behind the handshake, as a connection that was lost
            code = KafkaCode.SSL
        self._code, self._text, self._heard_s = code, text, time.monotonic()

    def clear(self) -> None:
        self._has_answered = True
        self._code, self._text, self._heard_s = 0, "", float("-inf")


def no_such_topic(name: str, bootstrap: str) -> UserMistake:
    """Returns the error to raise if the controller knows no topic `name`."""
    return UserMistake(
        f"topic {name}: expected it in Kafka at {bootstrap}, found none; check the job's name and the address, or make "
        "its topics with 'streamtrain topics create JOB.toml'"
    )


def explain(code: int, text: str, what: str, bootstrap: str, heard: Heard | None = None) -> StreamtrainError:
    """Our error for one of Kafka's at `bootstrap`, while `what` was asked; `heard` by the same client meanwhile."""
    response = response_to(code)
    said = f"; {heard.text}" if heard is not None and heard.text else ""
    if is_passing(code) and heard is not None and response_to(heard.code) in _FOR_GOOD:
        code, response, text, said = heard.code, response_to(heard.code), heard.text, ""
    elif is_passing(code) and os.strerror(errno.EMFILE) in said:
        return TooManyOpenFiles(
            f"{what}: expected to open a connection to Kafka at {bootstrap}, got: {os.strerror(errno.EMFILE)}; "
            "let this process open more (ulimit -n, LimitNOFILE=)"
        )
    elif is_passing(code):
        no_answer = code < 0 and response is not KafkaResponse.MISSING
        if no_answer and heard is not None and (spoken := heard.other_protocol(bootstrap)) is not None:
            return KafkaDenied(
                f"{what}: expected security.protocol={spoken} in [kafka], which the listener at {bootstrap} speaks, "
                f"got {heard.protocol}"
            )
        kind = KafkaSettling if code > 0 or response is KafkaResponse.MISSING else KafkaUnreachable
        return kind(
            f"{what}: expected an answer from Kafka at {bootstrap}, got none ({text}{said}); "
            "check the address and that the broker runs (streamtrain broker start)"
        )
    if _ALERT.search(text):
        return KafkaDenied(
            f"{what}: Kafka at {bootstrap} refuses this client's certificate: {text}; check ssl.certificate.location "
            "and ssl.key.location in [kafka]: set, not expired, of an authority that the broker trusts"
        )
    if response is KafkaResponse.DENIED:
        return KafkaDenied(
            f"{what}: Kafka at {bootstrap} does not let this user in: {text}; "
            "check security.protocol, the certificates and the user's name, password and rights in [kafka]"
        )
    load()  # for the code's name
    refused = f"{what}: Kafka at {bootstrap} refused: {text}{said} ({_native.kafka_error_name(code)})"
    if code == KafkaError._UNSUPPORTED_FEATURE:
        return UserMistake(f"{refused}; check that bootstrap.servers is a broker's listener, not a controller's")
    if code in _CONFIGURED:
        return UserMistake(refused)
    return (KafkaBroken if response is KafkaResponse.RENEW else StreamtrainError)(refused)
