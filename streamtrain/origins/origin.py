"""Where a job's records come from, as runs ask for it: its identity, its partitions, where to begin and to go on.

What a lineage has seen of it are Positions: its identity, and of each partition the next offset and rows used there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from streamtrain.topics.manifest import Position, Positions

Gaps = tuple[Mapping[str, Any], ...]  # as manifests hold them


@dataclass(frozen=True)
class Intake:
    """Who reads it in a run: the process's name, what is told it beside what every ingest is told, and how many
    threads may share its partitions."""

    role: str
    config: Mapping[str, Any]
    most_threads: int
    rows: int | None = None  # that there are in all, where that is known


class Origin(Protocol):
    """Of one job. The coordinator and the supervisor each have one; all but `name_of` and `trained` may ask Kafka."""

    def name_of(self, partition: int) -> str:
        """What a partition's records are of, as dead letters say it."""

    def intake(self, until_end: bool) -> Intake:
        """Asked at a command's start. UserMistake where there is nothing to read."""

    def begin(self) -> tuple[Positions, Gaps]:
        """Where a new lineage begins, and what its manifests tell of that."""

    def go_on(self, version: int, seen: Positions, known: Gaps, accept_gap: bool = False) -> tuple[Positions, Gaps]:
        """Where to read on after what snapshot `version` has `seen`, and the gaps there beside the `known` ones.

        Without `accept_gap` UserMistake where rows would be left out, which names them.
        """

    def check(self, version: int, seen: Positions) -> None:
        """Before a publication of what was read since: raises where what was read may be of another origin."""

    def trained(self, positions: Sequence[Position]) -> None:
        """Up to here it is trained and published; returns at once."""
