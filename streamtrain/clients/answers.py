"""Answers of a model in this process."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Generic, TypeVar

from streamtrain.errors import RecordError
from streamtrain.topics.predictions import RowAnswer

Values = TypeVar("Values", covariant=True)
Outcome = RowAnswer | RecordError  # of a row, where errors are returned


@dataclass(frozen=True, slots=True)
class ModelAnswer(Generic[Values]):
    """`values`, as predict() gives them, all of one snapshot: its version, its digest (hex), when it was made."""

    values: Values
    version: int
    digest: str
    created_ms: int

    @property
    def age_s(self) -> float:
        """Seconds since the snapshot was made, by this machine's clock."""
        return max(0.0, time.time() - self.created_ms / 1000)
