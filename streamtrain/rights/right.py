"""One right, and the line of Kafka's own tool that gives it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["topic", "group", "transactional-id"]


@dataclass(frozen=True)
class Right:
    """To do these operations on what has this name, or with `begins` on whatever begins with it."""

    kind: Kind
    name: str
    operations: tuple[str, ...]
    begins: bool = False

    def line(self, bootstrap: str, principal: str) -> str:
        """As kafka-acls.sh takes it."""
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
    """That topics are there, and how they are set."""
    return [Right("topic", name, ("Describe", "DescribeConfigs")) for name in names]


def writes(*names: str) -> Iterable[Right]:
    return [Right("topic", name, ("Write", "Describe")) for name in names]
