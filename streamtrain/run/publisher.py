"""The protocol of an object that takes a run's publications. So the loop that makes them knows no Kafka."""

from __future__ import annotations

from typing import Protocol

from streamtrain.run.lineage import Lineage
from streamtrain.run.publication import Assembled
from streamtrain.run.unpublished_dead_letters import AllLetters, Letters


class Publisher(Protocol):
    """Takes one publication at a time, each whole or not at all. What its methods raise ends the run."""

    @property
    def advice(self) -> str:
        """Returns what to do about too many dead letters, for an error."""

    @property
    def unreachable(self) -> bool:
        """Whoever keeps the publications does not answer just now."""

    @property
    def awaited(self) -> int | None:
        """The round whose publication training waits for, below 0 while it is not known; None where it never waits."""

    def name_of(self, partition: int) -> str:
        """Returns the name of the source of a partition's records, as dead letters show it."""

    def prepare(self, lineage: Lineage) -> None:
        """A publication of what follows `lineage` is about to be made: time to look whether it may be."""

    def publish(self, assembled: Assembled, letters: Letters | AllLetters) -> int:
        """The manifest's offset, once everything is kept. Called in a thread of its own."""

    def published(self, assembled: Assembled) -> None:
        """The publication is taken over as the newest; returns at once."""

    def heed(self, pending: bool) -> None:
        """Asked many times a second; `pending`: a publication is. Raises where the run is to end."""
