"""One look at a model's score, and a condition of a program's own, which sees them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Evaluation:
    """The model's score after a round: its number, the passes over the rows that are done, the rows trained, the
    seconds since training began, and the version of the snapshot that was scored."""

    score: float
    minimise: bool
    version: int
    round: int
    epoch: int
    rows: int
    seconds: float


class Condition(Protocol):
    @property
    def name(self) -> str:
        """Returns the name that a result shows."""

    def met(self, seen: Sequence[Evaluation]) -> str:
        """Why training ends with the last of these; "" where it goes on."""
