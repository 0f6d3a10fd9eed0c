"""What a topic of a job is: name rule, cleanup policy, wire version. Knows no process and opens nothing.

A topic's file has HELP, TOPIC and, unless its messages are the user's rows, document(message) -> what `read` shows,
with our own error for bytes that are not its own, and line(document) -> the same in a line for people.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Literal, NamedTuple

from streamtrain.errors import UserMistake
from streamtrain.topics import REGISTRY

MESSAGE_BYTES = 900_000  # of a value we write; librdkafka's message.max.bytes is 1,000,000, key and headers included
RESERVED_HEADER_PREFIX = "streamtrain-"
# Kafka refuses a message whose writer's clock is an hour ahead; nothing of ours reads the time of these messages
_OURS = {"message.timestamp.type": "LogAppendTime"}
_NAME_LENGTH = 249  # Kafka's limit for a topic name


class Message(NamedTuple):
    """One Kafka message to write; `value` None is a tombstone."""

    key: bytes | None
    value: bytes | memoryview | None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class Topic:
    """A topic a job has; `config` and `partitions` are what it is made with unless the job file says otherwise."""

    key: str
    config: Mapping[str, str]
    partitions: int = 1
    fixed_partitions: bool = False
    renameable: bool = True
    wire_version: int = 1
    rows: Literal["training", "requests"] | None = None  # the user's own topic: rows in the job's format

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

    def name(self, job: str, renamed: str | None = None) -> str:
        """The topic's name in Kafka: `<job>.<key>` unless the job file renames it."""
        if renamed is not None and not self.renameable:
            raise UserMistake(
                f"topics.{self.key}: the {self.suffix} topic cannot be renamed, so that a bootstrap address and a job "
                f"name are enough to find it; expected no name, got {renamed!r}; remove the line"
            )
        name = f"{job}.{self.suffix}" if renamed is None else renamed
        if len(name) > _NAME_LENGTH:
            raise UserMistake(f"topics.{self.key}: expected a name of at most {_NAME_LENGTH} letters, got {len(name)}")
        return name


def sha256(data: bytes | memoryview) -> bytes:
    return hashlib.sha256(data).digest()


@cache
def all_topics() -> Mapping[str, Topic]:
    """Every topic of a job by key: the files of this folder that have a TOPIC."""
    return MappingProxyType({key: topic(key) for key in REGISTRY.names()})


def row_topics() -> list[str]:
    """The topics programs write rows to, as people name them."""
    return [entry.suffix for entry in all_topics().values() if entry.rows is not None]


def topic(key: str) -> Topic:
    """The topic named `key` (dashes or underscores); UserMistake names the ones there are."""
    found = REGISTRY.get(key).TOPIC
    assert isinstance(found, Topic) and found.key in (key, key.replace("-", "_")), key
    return found
