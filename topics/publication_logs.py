"""The round logs of one publication: the only one, or one of each host that contributed to the snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamtrain.errors import CheckFailed
from streamtrain.topics.manifest import Run
from streamtrain.topics.rounds import RoundLog, Structs
from streamtrain.topics.wire import plain


@dataclass(frozen=True)
class RoundLogs:
    """The logs of one publication, in order: the only one, or each contribution's. CheckFailed where one is missing or
    of another publication, or where they are not in the order of their smallest partitions."""

    each: tuple[RoundLog, ...]

    def __post_init__(self) -> None:
        first, where = self.first, f"round logs of {self.first.job} version {self.first.version}"
        places = [(log.contribution, log.contributions) for log in self.each]
        if places != [(at, len(self.each)) for at in range(len(self.each))]:
            raise CheckFailed(f"{where}: expected every contribution in order, got {places}")
        for log in self.each[1:]:
            if _publication(log) != _publication(first):
                raise CheckFailed(f"{where}: contribution {log.contribution} belongs to another snapshot")
        smallest = [log.smallest_partition for log in self.each]
        partitions = [number for log in self.each for number in np.unique(log.ranges["partition"]).tolist()]
        if smallest != sorted(smallest) or len(partitions) != len(set(partitions)):
            raise CheckFailed(f"{where}: expected each partition once, in order of the smallest, got {partitions}")

    def __iter__(self) -> Iterator[RoundLog]:
        return iter(self.each)

    @property
    def first(self) -> RoundLog:
        """A log whose job, snapshot, run, metrics and time are those of all."""
        return self.each[0]

    @property
    def is_folded(self) -> bool:
        """The snapshot is the fold of hosts' contributions; else one host trained it."""
        return self.first.host != ""

    @property
    def version(self) -> int:
        return self.first.version

    @property
    def digest(self) -> bytes:
        return self.first.digest

    @property
    def lineage(self) -> str:
        return self.first.lineage

    @property
    def run(self) -> Run:
        return self.first.run

    @property
    def metrics(self) -> Mapping[str, Any]:
        return self.first.metrics

    @property
    def created_ms(self) -> int:
        return self.first.created_ms

    @property
    def rounds(self) -> Structs:
        """The rounds of the lineage; contributions to a snapshot share one."""
        return self.first.rounds

    @property
    def slots(self) -> Structs:
        return np.concatenate([log.slots for log in self.each])

    @property
    def ranges(self) -> Structs:
        return np.concatenate([log.ranges for log in self.each])

    @property
    def rows_trained(self) -> int:
        return sum(log.rows_trained for log in self.each)

    @property
    def newest_event_ms(self) -> int:
        return max(log.newest_event_ms for log in self.each)

    @property
    def worker_deaths(self) -> int:
        """Deaths in the run so far; of many hosts, in their lives so far."""
        return sum(log.worker_deaths for log in self.each)

    @property
    def workers(self) -> int:
        """Workers at its end, of all hosts."""
        return sum(log.terms[-1].workers for log in self.each)


def _publication(log: RoundLog) -> tuple[object, ...]:
    """Returns what the logs of a publication have in common."""
    shared = log.job, log.lineage, log.run, log.version, log.digest, plain(log.metrics), log.created_ms
    return *shared, log.host == "", log.rounds["round"].tolist(), log.rounds["closed_window"].tolist()


def publications(logs: Iterable[RoundLog]) -> Iterator[RoundLogs]:
    """Yields the logs of each publication; leaves out one whose first or last contributions are missing.

    CheckFailed as RoundLogs.
    """
    found: list[RoundLog] = []
    for log in logs:
        found = [log] if log.contribution == 0 else [*found, log]
        if log.contribution == log.contributions - 1 and len(found) == log.contributions:
            yield RoundLogs(tuple(found))
