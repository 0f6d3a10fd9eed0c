"""Rounds that are averaged but not yet published: their log, and the positions they lead to.

Used by the coordinator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from streamtrain import _native
from streamtrain.topics.manifest import Position
from streamtrain.topics.named_schemas import Answer
from streamtrain.topics.rounds import RANGE_DTYPE, ROUND_DTYPE, SLOT_DTYPE, Structs


@dataclass(frozen=True)
class Columns:
    """The log of consecutive rounds, in the layouts of topics/rounds.py."""

    rounds: Structs
    slots: Structs
    ranges: Structs
    schemas: Mapping[str, Answer] = field(default_factory=dict)  # that the records of these rounds name

    @classmethod
    def empty(cls) -> Columns:
        return cls(np.empty(0, ROUND_DTYPE), np.empty(0, SLOT_DTYPE), np.empty(0, RANGE_DTYPE))

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Columns:
        if not parts:
            return cls.empty()
        names = ("rounds", "slots", "ranges")
        rounds, slots, ranges = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
        return cls(rounds, slots, ranges)

    def cut(self, last_round: int) -> tuple[Columns, Columns]:
        """(rounds up to and including `last_round`, the rest)."""
        rounds = int(np.searchsorted(self.rounds["round"], last_round, side="right"))
        slots = int(self.rounds["slots"][:rounds].sum(dtype=np.int64))
        ranges = int(self.slots["range_count"][:slots].sum(dtype=np.int64))
        return (
            Columns(self.rounds[:rounds], self.slots[:slots], self.ranges[:ranges]),
            Columns(self.rounds[rounds:], self.slots[slots:], self.ranges[ranges:]),
        )

    @property
    def nbytes(self) -> int:
        return self.rounds.nbytes + self.slots.nbytes + self.ranges.nbytes


class UnpublishedRounds:
    """The round log that RoundLogThread has delivered so far and that no committed publication has taken."""

    def __init__(self, ring: _native.CoordinatorEnd) -> None:
        self._thread = _native.RoundLogThread(ring)
        self._thread.start()
        self._gathered: list[Columns] = []
        self._nbytes = 0
        self._last_round = -1
        self.gathered_round = -1  # the newest round whose log has come, published or not
        self.newest_timestamp_ms = -1

    def gather(self) -> Columns:
        """Takes what is new and returns it."""
        self.gathered_round, newest, rounds, slots, ranges = self._thread.take()
        self.newest_timestamp_ms = max(self.newest_timestamp_ms, newest)
        new = Columns(
            np.frombuffer(rounds, ROUND_DTYPE), np.frombuffer(slots, SLOT_DTYPE), np.frombuffer(ranges, RANGE_DTYPE)
        )
        if len(new.rounds):
            self._gathered.append(new)
            self._nbytes += new.nbytes
            self._last_round = int(new.rounds["round"][-1])
        return new

    @property
    def nbytes(self) -> int:
        return self._nbytes + self._thread.waiting_bytes()

    @property
    def last_round(self) -> int:
        """The newest round gathered, -1 if none is waiting."""
        return self._last_round if self._gathered else -1

    def take(self, last_round: int) -> Columns:
        """The log of the rounds up to `last_round`, which leaves this object."""
        whole = Columns.joined(self._gathered)
        taken, rest = whole.cut(last_round)
        self._gathered = [rest] if len(rest.rounds) else []
        self._nbytes = rest.nbytes
        return taken


def positions_after(positions: Sequence[Position], ranges: Structs) -> list[Position]:
    """The positions once `ranges` are done; partitions found meanwhile are appended."""
    after = list(positions)
    if not len(ranges):
        return after
    partitions, last_first = np.unique(ranges["partition"][::-1], return_index=True)
    for partition, index in zip(partitions, last_first, strict=True):
        last = ranges[len(ranges) - 1 - index]
        while len(after) <= partition:
            after.append(Position(0))
        after[partition] = Position(int(last["to_offset"]), int(last["to_row"]))
    return after
