"""The registry of roles: what each may do on a Kafka that checks who a client is.

An entry is rights(job, topics) -> the rights it needs, where `topics` are the names of a job's topics by key. A right
also gives the line of Kafka's own tool that grants it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from streamtrain.registry import ModuleRegistry
from streamtrain.topics import REGISTRY as TOPICS
from streamtrain.topics.topic import all_topics

HELD_OUT = "held_out"  # the topic of rows that a job's model is judged by, where it has one
CONTRIBUTIONS = "contributions"  # the topic of a job that many hosts train
Kind = Literal["topic", "group", "transactional-id"]


@dataclass(frozen=True)
class Right:
    """A right to these operations on the resource of this name, or with `begins` on all whose name begins with it."""

    kind: Kind
    name: str
    operations: tuple[str, ...]
    begins: bool = False

    def line(self, bootstrap: str, principal: str) -> str:
        """Returns the command line of kafka-acls.sh that grants this right."""
        operations = [part for operation in self.operations for part in ("--operation", operation)]
        pattern = ["--resource-pattern-type", "prefixed"] if self.begins else []
        return shlex.join([
            "kafka-acls.sh", "--bootstrap-server", bootstrap, "--add", "--allow-principal", principal, *operations,
            f"--{self.kind}", self.name, *pattern,
        ])  # fmt: skip


def reads(*names: str) -> Iterable[Right]:
    """Returns the rights to read topics, which include to see that they exist and how they are configured.

    Our readers join no group.
    """
    return [Right("topic", name, ("Read", "Describe", "DescribeConfigs")) for name in names]


def looks(*names: str) -> Iterable[Right]:
    """Returns the rights to see that topics exist, and how they are set."""
    return [Right("topic", name, ("Describe", "DescribeConfigs")) for name in names]


def writes(*names: str) -> Iterable[Right]:
    return [Right("topic", name, ("Write", "Describe")) for name in names]


@dataclass(frozen=True)
class Role:
    """An entry."""

    rights: Callable[[str, Mapping[str, str]], list[Right]]
    help: str


REGISTRY = ModuleRegistry(__name__, "role", Role)


@REGISTRY.entry("makes the topics: `streamtrain topics create`")
def admin(job: str, topics: Mapping[str, str]) -> list[Right]:
    """The role that creates a job's topics."""
    return [Right("topic", name, ("Create", "Describe", "DescribeConfigs")) for name in topics.values()]


@REGISTRY.entry("looks at all topics: `streamtrain status`, `history`, `verify`, `replay`, `read`")
def auditor(job: str, topics: Mapping[str, str]) -> list[Right]:
    """The role that reads everything and changes nothing."""
    return [*reads(*topics.values())]


@REGISTRY.entry("follows snapshots and predicts in a program of its own: LiveModel, follow_snapshots")
def follower(job: str, topics: Mapping[str, str]) -> list[Right]:
    """The role that follows a model and predicts in its own program."""
    return [*reads(topics["snapshots"])]


@REGISTRY.entry("answers requests: `streamtrain predict`")
def predictor(job: str, topics: Mapping[str, str]) -> list[Right]:
    """The role that answers requests as a stream processor."""
    group = f"{job}.predict"
    return [
        *reads(topics["requests"], topics["snapshots"]),
        *writes(topics["predictions"]),
        Right("group", group, ("Read", "Describe")),
        Right("transactional-id", f"{group}.", ("Write", "Describe"), begins=True),
    ]


@REGISTRY.entry("writes training records and requests: RecordWriter, `streamtrain produce`")
def producer(job: str, topics: Mapping[str, str]) -> list[Right]:
    """The role that writes training records and requests."""
    return [*writes(topics["records"], topics["requests"])]


@REGISTRY.entry("answers rows over HTTP with the newest snapshot: `streamtrain serve`")
def serve(job: str, topics: Mapping[str, str]) -> list[Right]:
    """The server of predictions over HTTP: a follower."""
    return follower(job, topics)


@REGISTRY.entry("trains: `streamtrain train`")
def trainer(job: str, topics: Mapping[str, str]) -> list[Right]:
    """The role that trains: it reads records, and only it writes what a job publishes. Of many hosts each has it."""
    own = [topics[key] for key, topic in all_topics().items() if topic.written is not None]
    held_out = [topics[HELD_OUT]] if HELD_OUT in topics else []
    exchange = _exchange(job, topics[CONTRIBUTIONS]) if CONTRIBUTIONS in topics else []
    transactional_id = TOPICS.get("control").transactional_id(job)  # an entry is imported when it is used
    return [
        *reads(topics["records"], *own, *held_out),
        *writes(*own),
        *looks(topics["predictions"]),  # a start tells which of the job's topics are wanting
        Right("transactional-id", transactional_id, ("Write", "Describe")),
        Right("group", job, ("Read", "Describe")),  # to show its lag
        *exchange,
    ]


def _exchange(job: str, contributions: str) -> Iterable[Right]:
    """Returns the rights to exchange contributions with other hosts, to share partitions and to elect a leader."""
    groups = [Right("group", f"{job}.{group}", ("Read", "Describe")) for group in ("hosts", "leader")]
    deletes = Right("topic", contributions, ("Delete",))  # the leader deletes what it has folded
    return [*reads(contributions), *writes(contributions), deletes, *groups]


@REGISTRY.entry("shows the job in a browser: `streamtrain ui`")
def ui(job: str, topics: Mapping[str, str]) -> list[Right]:
    """The page over a job's topics."""
    return auditor(job, topics)


def rights_of(role: str, job: str, topics: Mapping[str, str]) -> list[Right]:
    """Returns one right for each thing there is. Raises UserMistake for an unknown role."""
    found: dict[tuple[str, str], Right] = {}
    for right in REGISTRY.get(role).rights(job, topics):
        before = found.get((right.kind, right.name))
        operations = (*(before.operations if before else ()), *right.operations)
        found[right.kind, right.name] = replace(right, operations=tuple(dict.fromkeys(operations)))
    return list(found.values())
