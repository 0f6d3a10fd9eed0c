"""Rows that a source holds and no record can: where each is and why, how many, and how many are too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, overload

from streamtrain.errors import UserMistake
from streamtrain.log import get_logger

log = get_logger(__name__)
MAX_REJECTED = 0.01  # of the rows of a source
_KEPT_ROWS = 10_000  # of which place and reason are kept: a count must not grow with the data
_REPORTED_ROWS = 5  # one by one, as they are met
_EARLY_ROWS = 100_000  # a source that has more than the share of so many is not read on


class Rejected(NamedTuple):
    """A row that cannot be used. `place`: its number in the source or its line in a file; `reason`: which column it is,
    what was expected there and what was found."""

    place: str
    reason: str

    @property
    def path(self) -> str:
        """The column's path in the row, such as $.a; "" where the row is none."""
        return self.reason.partition(": ")[0] if self.reason.startswith("$") else ""

    def __str__(self) -> str:
        return f"{self.place} at {self.reason}" if self.reason.startswith("$") else f"{self.place}: {self.reason}"


class Unreadable(NamedTuple):
    """Stands in the place of a row that a reader cannot make a dict of. `record`: its bytes, where they are a record of
    the format `format`."""

    reason: str
    record: bytes = b""
    format: str = ""


class RejectedRows(Sequence[Rejected]):
    """Rows that could not be used, by their order in the source: the first 10,000 of them. `rows`: how many there are.

    One thread adds, others may read at the end.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._found: list[tuple[int, Rejected]] = []

    @property
    def has_room(self) -> bool:
        return len(self._found) < _KEPT_ROWS

    def add(self, number: int, row: Rejected) -> None:
        """`number`: the row's in its source, from 0."""
        self.rows += 1
        if self.has_room:
            self._found.append((number, row))

    def merged(self, other: RejectedRows) -> RejectedRows:
        """Returns the rows of both."""
        both = RejectedRows()
        both.rows = self.rows + other.rows
        both._found = sorted([*self._found, *other._found])[:_KEPT_ROWS]
        return both

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Rejected]:
        return (row for _, row in self._found)

    @overload
    def __getitem__(self, at: int) -> Rejected: ...
    @overload
    def __getitem__(self, at: slice) -> list[Rejected]: ...
    def __getitem__(self, at: int | slice) -> Rejected | list[Rejected]:
        return [row for _, row in self._found[at]] if isinstance(at, slice) else self._found[at][1]

    def __repr__(self) -> str:
        return f"RejectedRows({self.rows:,}: {'; '.join(map(str, self[:3]))}{' …' if self.rows > 3 else ''})"


class Rejecting:
    """Counts the rows of one source and those of them that no record can hold, and stops where they are too many.

    `setting`: what users raise the share by.
    """

    def __init__(self, share: float = MAX_REJECTED, setting: str = "max_rejected", reports: bool = True) -> None:
        """UserMistake for a share that is none."""
        self._share, self._setting, self._reports = share_of(share, setting), setting, reports
        self.found = RejectedRows()
        self.rows = 0  # read, with those left out

    def again(self) -> Rejecting:
        """The same for another pass over the same rows, which reports nothing."""
        return Rejecting(1.0, reports=False)

    def take(self, rows: int) -> None:
        """Counts rows that are used."""
        self.rows += rows

    def leave_out(self, row: Rejected) -> None:
        """Counts a row and reports the first ones. UserMistake where there are too many, however long the source is."""
        self.found.add(self.rows, row)
        self.rows += 1
        if self._reports and self.found.rows <= _REPORTED_ROWS:
            log.warning(f"{row}; the row is left out")
        if self.found.rows / max(self.rows, _EARLY_ROWS) > self._share:
            raise self._too_many()

    @contextmanager
    def counting(self, rows: int) -> Iterator[None]:
        """Counts so many rows, of which those that are left out meanwhile are counted already."""
        before = self.found.rows
        yield
        self.take(rows - (self.found.rows - before))

    def take_all(self, found: RejectedRows, rows: int) -> None:
        """Counts a source that was read: `found` of its `rows` are left out. UserMistake where they are too many."""
        self.found, self.rows = found, rows
        for row in found[:_REPORTED_ROWS] if self._reports else ():
            log.warning(f"{row}; the row is left out")
        self.end()

    def end(self) -> None:
        """The source is at its end. UserMistake where more than the share was left out."""
        if self.found.rows / max(self.rows, 1) > self._share:
            raise self._too_many()
        if self._reports and self.found.rows:
            log.warning(f"left out, as they cannot be used: {self.found.rows:,} of {self.rows:,} rows")

    def _too_many(self) -> UserMistake:
        first = "; ".join(map(str, self.found[:_REPORTED_ROWS]))
        return UserMistake(
            f"{first}; expected at most {self._share:.4g} of the rows to be such, got {self.found.rows:,} of "
            f"{self.rows:,}; mend them, give their columns what they hold (kind, list, path, missing), or raise "
            f"{self._setting}"
        )


def share_of(given: Any, setting: str) -> float:
    """UserMistake for what is no share."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise UserMistake(f"{setting}: expected a share of the rows from 0 to 1, got {given!r}")
    return float(given)
