"""The record source of a job, as runs use it: its identity, its partitions, where to begin and where to continue.

What a lineage has seen of it are Positions: its identity, and for each partition the next offset and the rows used
there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from streamtrain.topics.manifest import Position, Positions

Gaps = tuple[Mapping[str, Any], ...]  # as manifests hold them


@dataclass(frozen=True)
class Intake:
    """The process that reads the record source in a run.

    It has the process's name, its config beside what every ingest gets, and how many threads may share its partitions.
    """

    role: str
    config: Mapping[str, Any]
    most_threads: int
    rows: int | None = None  # that there are in all, where that is known


class RecordSource(Protocol):
    """The record source of one job. The coordinator and the supervisor each have one.

    All methods but `name_of` and `trained` may send requests to Kafka.
    """

    def name_of(self, partition: int) -> str:
        """Returns the name that dead letters give to the source of a partition's records."""

    def intake(self, until_end: bool) -> Intake:
        """Asked at a command's start. UserMistake where there is nothing to read."""

    def begin(self) -> tuple[Positions, Gaps]:
        """Returns where a new lineage begins, and the gaps that its manifests record for that."""

    def go_on(self, version: int, seen: Positions, known: Gaps, accept_gap: bool = False) -> tuple[Positions, Gaps]:
        """Returns where to read on after what snapshot `version` has `seen`, and the gaps there.

        The `known` gaps are not among these. Raises UserMistake if rows would be skipped without `accept_gap`; it names
        them.
        """

    def check(self, version: int, seen: Positions) -> None:
        """Before a publication of what was read since: raises where what was read may be of another source."""

    def trained(self, positions: Sequence[Position]) -> None:
        """Up to here it is trained and published; returns at once."""
