"""The round logs a rounds topic holds, publication after publication; they are many, so never all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice

from streamtrain.errors import CheckFailed
from streamtrain.kafka.clients import KafkaConsumer, Message
from streamtrain.kafka.reader import read
from streamtrain.kafka.renewing import Renewing
from streamtrain.kafka.settings import Purpose
from streamtrain.topics.publication_logs import RoundLogs, publications
from streamtrain.topics.rounds import RoundLog, decode, join

_AT_ONCE = 8  # messages that are read for one publication


def round_logs(kafka: Mapping[str, object], topic: str) -> Iterator[RoundLogs]:
    """Yields the logs of every publication up to the topic's end as it is now, in the order they were committed.

    Leaves out a publication whose first messages retention has removed. CheckFailed names what is no part of a log.
    """
    with KafkaConsumer.open(Purpose.READ, kafka) as consumer:
        yield from _joined(topic, read(consumer, topic, 0, *consumer.bounds(topic, 0)))


def some_round_logs(kafka: Mapping[str, object], topic: str, most: int) -> Iterator[RoundLogs]:
    """Yields the logs of at most `most` publications from before the newest `most` messages, at evenly spaced offsets.

    Skips publications with a log that is split into parts. Raises KafkaUnreachable if no broker answers.
    """
    with KafkaConsumer.open(Purpose.READ, kafka) as consumer:
        low, end = consumer.bounds(topic, 0)
        before = end - most
        if before - low <= _AT_ONCE * most:
            logs = list(_whole(read(consumer, topic, 0, low, before)))
            yield from logs[:: max(1, -(-len(logs) // most))]
            return
        for begin in range(low, before, -(-(before - low) // most)):
            yield from islice(_whole(read(consumer, topic, 0, begin, min(before, begin + _AT_ONCE))), 1)


def round_logs_from(
    kafka: Mapping[str, object], topic: str, is_late: Callable[[RoundLog], bool]
) -> Iterator[RoundLogs]:
    """Yields the logs of each publication, in order, from the first on for which `is_late` holds. It is called with
    single parts, and has to hold for all after the first.

    Finds that one by halves, however many there are. Raises KafkaUnreachable where no broker answers,
    CheckFailed for what is no part of a log.
    """
    with KafkaConsumer.open(Purpose.READ, kafka) as consumer:
        begin, end = consumer.bounds(topic, 0)
        until = end
        while begin < until:
            middle = (begin + until) // 2
            found = next(read(consumer, topic, 0, middle, end, 1), None)
            if found is None or is_late(_part(topic, found)):
                until = middle
            else:
                begin = found.offset + 1
        yield from _joined(topic, read(consumer, topic, 0, begin, end, _AT_ONCE))


def _part(topic: str, message: Message) -> RoundLog:
    try:
        return decode(message.value or b"")
    except CheckFailed as error:
        raise CheckFailed(f"{topic}@{message.offset}: {error}") from None


def _whole(messages: Iterable[Message]) -> Iterator[RoundLogs]:
    """Yields publications whose logs are one message each; skips those that cannot be decoded."""

    def logs() -> Iterator[RoundLog]:
        for message in messages:
            with suppress(CheckFailed):  # what is drawn of many is not what is verified
                log = decode(message.value or b"")
                if log.parts == 1 and len(log.rounds):
                    yield log

    with suppress(CheckFailed):
        yield from publications(logs())


def _joined(topic: str, messages: Iterable[Message]) -> Iterator[RoundLogs]:
    """Yields publications whose messages are all there."""
    yield from publications(_logs(topic, messages))


def _logs(topic: str, messages: Iterable[Message]) -> Iterator[RoundLog]:
    parts: list[RoundLog] = []
    for message in messages:
        try:
            part = decode(message.value or b"")
            if part.part == 0:
                parts = []
            parts.append(part)
            if part.part == part.parts - 1 and len(parts) == part.parts:
                yield join(parts)
        except CheckFailed as error:
            raise CheckFailed(f"{topic}@{message.offset}: {error}") from None


class RoundLogTail:
    """The newest round logs of a topic, then those that have been added since the last look; one thread at a time.

    Reads with a consumer of `clients`.
    """

    def __init__(self, topic: str, messages: int, clients: Renewing[KafkaConsumer]) -> None:
        self._clients = clients
        self._topic = topic
        self._messages = messages  # looked at first
        self._next = -1

    def look(self) -> list[RoundLogs]:
        """Raises KafkaUnreachable when no broker answers, CheckFailed for what is no round log."""
        return self._clients.ask(self._look)

    def _look(self, consumer: KafkaConsumer) -> list[RoundLogs]:
        low, end = consumer.bounds(self._topic, 0)
        begin = self._next if 0 <= self._next <= end else end - self._messages
        found = list(_joined(self._topic, read(consumer, self._topic, 0, max(low, begin), end)))
        self._next = end  # a publication's parts are committed together
        return found
