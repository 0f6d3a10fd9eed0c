"""Topics as lists of messages, written in transactions as Kafka does: a marker takes an offset of each partition."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from streamtrain.checks.verify.topics import ReadTopics, Topic
from streamtrain.kafka.admin import TopicState
from streamtrain.kafka.clients import Message
from streamtrain.topics.topic import Message as Sent
from streamtrain.topics.topic import all_topics, topic

BEGAN_MS = 1_750_000_000_000


@dataclass
class Partition:
    """A partition whose messages are all at hand, in offset order."""

    low: int = 0
    end: int = 0
    messages: list[Message] = field(default_factory=list)

    def read(self, begin: int, end: int) -> Iterator[Message]:
        at = bisect_left(self.messages, begin, key=lambda message: message.offset)
        while at < len(self.messages) and self.messages[at].offset < end:
            yield self.messages[at]
            at += 1

    def remove(self, offset: int) -> None:
        """Removes messages before `offset`, as retention does."""
        self.low = offset
        self.messages = [message for message in self.messages if message.offset >= offset]


Listed = Partition


@dataclass
class Written:
    """Every topic by key; `clock_ms` goes on with each message."""

    job: str
    partitions: dict[str, list[Partition]] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    clock_ms: int = BEGAN_MS

    @classmethod
    def empty(cls, job: str, **counts: int) -> Written:
        """One partition a topic unless `counts` says otherwise."""
        partitions = {key: [Partition() for _ in range(counts.get(key, 1))] for key in all_topics()}
        return cls(job, partitions, {key: f"{key}-topic-id" for key in partitions})

    def name(self, key: str) -> str:
        return topic(key).name(self.job)

    def append(
        self, key: str, value: bytes | None, message_key: bytes | None = None,
        headers: Iterable[tuple[str, bytes]] = (), partition: int = 0,
    ) -> int:  # fmt: skip
        at = self.partitions[key][partition]
        self.clock_ms += 1
        message = Message(partition, at.end, self.clock_ms, message_key, value, list(headers), 0, "")
        at.messages.append(message)
        at.end += 1
        return message.offset

    def skip(self, key: str, count: int = 1, partition: int = 0) -> None:
        """Offsets that no reader sees: a marker, an aborted transaction."""
        self.partitions[key][partition].end += count

    def transaction(self, messages: Iterable[tuple[str, Sent]]) -> dict[str, int]:
        """Writes them and the markers; gives the last offset of each topic key."""
        last: dict[str, int] = {}
        for key, message in messages:
            value = None if message.value is None else bytes(message.value)
            last[key] = self.append(key, value, message.key, message.headers)
        for key in last:
            self.skip(key)
        return last

    def compact(self, key: str) -> None:
        """Leaves the newest message of each key, tombstones away."""
        for partition in self.partitions[key]:
            newest = {message.key: message for message in partition.messages}
            last = [message for message in partition.messages if newest[message.key] is message]
            partition.messages = [message for message in last if message.value is not None]

    def topics(self, exactly_once: bool = True) -> ReadTopics:
        """Returns them as a verification reads them, a minute after."""
        found = {key: Topic(self.name(key), self.topic_ids[key], each) for key, each in self.partitions.items()}
        end, now_ms = self.partitions["control"][0].end, self.clock_ms + 60_000
        return ReadTopics(job=self.job, control_end=end, looked_ms=now_ms, exactly_once=exactly_once, **found)


@dataclass
class Admin:
    """Kafka's administration as a start asks it, answered from the lists."""

    written: Written

    def _partitions(self, name: str) -> list[Partition]:
        return next(found for key, found in self.written.partitions.items() if self.written.name(key) == name)

    def describe(self, names: Iterable[str]) -> dict[str, TopicState]:
        keys = {self.written.name(key): key for key in self.written.partitions}
        return {
            name: TopicState(name, self.written.topic_ids[keys[name]], len(self._partitions(name)), 1, {}, "delete", 1)
            for name in names
        }

    def earliest(self, name: str, partitions: int) -> list[int]:
        return [partition.low for partition in self._partitions(name)[:partitions]]

    def last_stable(self, name: str, partitions: int) -> list[int]:
        return [partition.end for partition in self._partitions(name)[:partitions]]

    high_watermarks = last_stable
