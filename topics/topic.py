"""The definition of a job's topic: name, settings, what a job file may say of it, wire version. Knows no process and
opens nothing.

A topic's file has HELP, TOPIC and, unless its messages are the user's rows, document(message) -> what `read` shows,
with our own error for bytes that are not its own, and line(document) -> the same in a line for people.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar

from streamtrain.errors import UserMistake
from streamtrain.topics import REGISTRY

MESSAGE_BYTES = 900_000  # of a value we write; librdkafka's message.max.bytes is 1,000,000, key and headers included
RESERVED_HEADER_PREFIX = "streamtrain-"
# Kafka refuses a message whose writer's clock is an hour ahead; nothing of ours reads the time of these messages
_OURS = {"message.timestamp.type": "LogAppendTime"}
_NAME_LENGTH = 249  # Kafka's limit for a topic name
BROKER_DEFAULT = -1  # as replication: what the broker is set to
_POLICY = "cleanup.policy"
Hosts = Literal["one", "many"]  # that train a job
T = TypeVar("T")


class Message(NamedTuple):
    """One Kafka message to write; `value` None is a tombstone."""

    key: bytes | None
    value: bytes | memoryview | None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class TopicWish:
    """A topic as the job wants it. `fixed_partitions`: another number is a mistake, not a difference to show."""

    key: str
    name: str
    partitions: int
    replication: int = BROKER_DEFAULT
    config: Mapping[str, str] = field(default_factory=dict)
    fixed_partitions: bool = False
    owned: bool = True
    loses: str = ""  # when it is deleted


@dataclass(frozen=True)
class Topic:
    """A topic a job has; `config` and `partitions` are what it is made with unless the job file says otherwise.

    written: by a trainer's transactions alone, or by others beside them; None: by no trainer.
    """

    key: str
    config: Mapping[str, str]
    partitions: int = 1
    fixed_partitions: bool = False
    renameable: bool = True
    wire_version: int = 1
    rows: Literal["training", "requests"] | None = None  # the user's own topic: rows in the job's format
    written: Literal["alone", "shared"] | None = None
    loses: str = ""  # who deletes it
    hosts: Hosts = "one"  # "many": only a job that many hosts train has it

    def __post_init__(self) -> None:
        config = {**(_OURS if self.owned else {}), **self.config}
        object.__setattr__(self, "config", MappingProxyType(config))

    @property
    def owned(self) -> bool:
        """False: the settings are the user's, only shown, never compared."""
        return self.rows is None

    @property
    def suffix(self) -> str:
        return self.key.replace("_", "-")

    def of(self, given: Mapping[str, T]) -> T | None:
        """Returns the value under its name, with dashes or underscores."""
        return given.get(self.key, given.get(self.suffix))

    def wrong(self, given: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str, object]]:
        """Yields what a job may not set for it: the setting, what is expected, and what was found. `given` may hold
        name, partitions, replication and config."""
        name, partitions = given.get("name"), given.get("partitions")
        if name is not None and not self.renameable:
            yield ("name",), "no name: a bootstrap address and a job name must be enough to find it", name
        if partitions not in (None, self.partitions) and self.fixed_partitions:
            yield ("partitions",), f"{self.partitions}, which is fixed", partitions
        policy = (given.get("config") or {}).get(_POLICY)
        if policy is not None and self.owned and not same_cleanup(str(policy), self.config[_POLICY]):
            yield ("config", _POLICY), f"{self.config[_POLICY]}, which its readers rest on", policy

    def name(self, job: str, renamed: str | None = None) -> str:
        """The topic's name in Kafka: `<job>.<key>` unless the job file renames it. UserMistake for what it may not."""
        self._check({"name": renamed})
        name = f"{job}.{self.suffix}" if renamed is None else renamed
        if len(name) > _NAME_LENGTH:
            raise UserMistake(f"topics.{self.key}: expected a name of at most {_NAME_LENGTH} letters, got {len(name)}")
        return name

    def wish(self, job: str, given: Mapping[str, Any]) -> TopicWish:
        """The topic that a job wants, of which it says what is `given`, as for wrong(). UserMistake for what it may
        not."""
        self._check(given)
        config = {**self.config, **{name: str(value) for name, value in (given.get("config") or {}).items()}}
        return TopicWish(
            key=self.key,
            name=self.name(job, given.get("name")),
            partitions=given.get("partitions") or self.partitions,
            replication=given.get("replication") or BROKER_DEFAULT,
            config=config,
            fixed_partitions=self.fixed_partitions,
            owned=self.owned,
            loses=self.loses,
        )

    def _check(self, given: Mapping[str, Any]) -> None:
        for setting, expected, got in self.wrong(given):
            raise UserMistake(f"topics.{self.key}.{'.'.join(setting)}: expected {expected}, got {got!r}")


def same_cleanup(policy: str, other: str) -> bool:
    """Returns whether both policies keep the newest message of each key for ever, or neither does."""
    return ("compact" in policy) == ("compact" in other)


def sha256(data: bytes | memoryview) -> bytes:
    return hashlib.sha256(data).digest()


@cache
def all_topics() -> Mapping[str, Topic]:
    """Every topic of a job by key: the files of this folder that have a TOPIC."""
    return MappingProxyType({key: topic(key) for key in REGISTRY.names()})


def topics_of(hosts: Hosts) -> Mapping[str, Topic]:
    """Returns the topics that a job of so many hosts has, by key."""
    return {key: entry for key, entry in all_topics().items() if entry.hosts in ("one", hosts)}


def job_topics(
    job: str, given: Mapping[str, Mapping[str, Any]] | None = None, hosts: Hosts = "one"
) -> list[TopicWish]:
    """Every topic of a job. `given` may hold what it says of each, by key, as [topics] has it. UserMistake for what it
    may not say, and for a name that is no topic."""
    given = given or {}
    for key in given:
        topic(key)  # raises for a name that is no topic
    return [entry.wish(job, entry.of(given) or {}) for entry in topics_of(hosts).values()]


def row_topics() -> list[str]:
    """The topics programs write rows to, as people name them."""
    return [entry.suffix for entry in all_topics().values() if entry.rows is not None]


def topic(key: str) -> Topic:
    """The topic named `key` (dashes or underscores); UserMistake names the ones there are."""
    found = REGISTRY.get(key).TOPIC
    assert isinstance(found, Topic) and found.key in (key, key.replace("-", "_")), key
    return found
