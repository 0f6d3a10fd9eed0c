"""The expected dead letters of one round log.

Finds the range that holds a row, and the letters by reference that a left-out batch must have.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from streamtrain.checks.verify.decoding import RecordDecoder
from streamtrain.checks.verify.verify_report import Check
from streamtrain.kafka.clients import Message
from streamtrain.topics.dead_letters import KEY_BYTES, DeadLetter, DeadRange
from streamtrain.topics.rounds import RoundLog
from streamtrain.topics.topic import sha256

Reference = tuple[int, int, int, int, int, int, int]  # partition, offset, row from, row to, until offset and row, round


_Place = tuple[str, int, int]


class _Expected(NamedTuple):
    """The record that a letter must match.

    `decoder` checks the fate of `rows` if the letter alone is not enough; None if they are not compared.
    """

    where: str
    digest: bytes | None
    size: int
    key: bytes | None
    rows: tuple[DeadRange, ...]
    decoder: RecordDecoder | None


@dataclass
class Waiting:
    """Letters whose record is still to be read, by identity of what it is of, partition and offset."""

    by_place: dict[_Place, list[_Expected]] = field(default_factory=dict)
    _met: set[_Place] = field(default_factory=set)
    _offsets: dict[tuple[str, int], list[int]] = field(default_factory=dict)  # sorted when first asked for

    def put(self, where: str, identity: str, letter: DeadLetter, decoder: RecordDecoder | None = None) -> None:
        """`decoder`: what it says of the rows is compared too."""
        digest = None if letter.value is None else sha256(letter.value)
        expected = _Expected(where, digest, letter.value_bytes, letter.key, letter.rows, decoder)
        self.by_place.setdefault((identity, letter.partition, letter.offset), []).append(expected)

    def meet(self, check: Check, identity: str, message: Message) -> None:
        """Compares the letters about a record with it."""
        place = identity, message.partition, message.offset
        expected = self.by_place.get(place, ())
        if expected:
            self._met.add(place)
        for letter in expected:
            value = message.value or b""
            same = letter.size == len(value) and letter.digest in (None, sha256(value))
            same = same and letter.key == _kept(message.key)
            check.expect(same, f"{letter.where}: its key and bytes are not the record's")
            if letter.decoder is not None:
                for rows in letter.rows:
                    check.problems += [f"{letter.where}: {text}" for text in letter.decoder.otherwise(message, rows)]

    def check_met(
        self, check: Check, identity: str, partition: int, begin: int, end: int, may_compact: bool = False
    ) -> None:
        """Once all records there were read: letters about offsets where none lies."""
        if not self._offsets:
            for name, number, offset in sorted(self.by_place):
                self._offsets.setdefault((name, number), []).append(offset)
        offsets = self._offsets.get((identity, partition), [])
        for offset in offsets[bisect_left(offsets, begin) : bisect_left(offsets, end)]:
            if (place := (identity, partition, offset)) not in self._met:
                where = self.by_place[place][0].where
                text = f"{where}: there is no record {offset} in partition {partition}"
                (check.not_checkable if may_compact else check.problems).append(text)


def _kept(key: bytes | None) -> bytes | None:
    """Returns a record's key as its letter keeps it; None if it is empty or longer than KEY_BYTES."""
    return key if key and len(key) <= KEY_BYTES else None


class LogTally:
    """A round log and what letters have told of its dead rows so far."""

    def __init__(self, log: RoundLog) -> None:
        self.log = log
        self.dead = np.zeros(len(log.ranges), np.int64)  # by range
        self.left_out = 0  # rows of letters that found no place in their header
        self.letters: set[tuple[int, int]] = set()  # (partition, offset) of those with their own rows
        self.references = list(_references(log))
        self._slot_of = np.repeat(np.arange(len(log.slots)), log.slots["range_count"])
        self._round_of = np.repeat(log.rounds["round"], log.rounds["slots"])
        partitions = np.unique(log.ranges["partition"]).tolist()
        self._indices = {partition: np.flatnonzero(log.ranges["partition"] == partition) for partition in partitions}

    def has(self, partition: int) -> bool:
        """The log has ranges of that partition."""
        return partition in self._indices

    def round_of(self, index: int) -> int:
        return int(self._round_of[self._slot_of[index]])

    def find(self, partition: int, offset: int, row: int) -> int:
        """The index of the range that holds a row, -1 where none does."""
        indices = self._indices.get(partition, np.empty(0, np.int64))
        ends = self.log.ranges["to_offset"][indices]
        for index in indices[np.searchsorted(ends, offset, side="left") :].tolist():
            part = self.log.ranges[index]
            if (int(part["from_offset"]), int(part["from_row"])) > (offset, row):
                return -1
            if (offset, row) < (int(part["to_offset"]), int(part["to_row"])):
                return int(index)
        return -1

    def place(self, letter: DeadLetter, rows: DeadRange) -> bool:
        """Counts the rows of an entry in the ranges that hold them; False where no range does."""
        row = rows.row_from
        while row < rows.row_to:
            index = self.find(letter.partition, letter.offset, row)
            if index < 0:
                return False
            part = self.log.ranges[index]
            inside = int(part["to_offset"]) == letter.offset
            until = min(rows.row_to, int(part["to_row"])) if inside else rows.row_to
            self.dead[index] += until - row
            row = until
        return rows.row_from < rows.row_to


def reference(letter: DeadLetter) -> Reference:
    """Returns the contents of a letter by reference."""
    assert letter.until is not None
    rows = letter.rows[0]
    return letter.partition, letter.offset, rows.row_from, rows.row_to, *letter.until, letter.round


def _references(log: RoundLog) -> Iterator[Reference]:
    """Yields the expected letters by reference of the left-out batches: one per range with trained rows."""
    starts = np.concatenate([[0], np.cumsum(log.slots["range_count"], dtype=np.int64)])
    round_of = np.repeat(log.rounds["round"], log.rounds["slots"])
    for index in np.flatnonzero(log.slots["rejected"]).tolist():
        for part in log.ranges[starts[index] : starts[index + 1]]:
            if part["trained"]:
                row = int(part["from_row"])
                yield (
                    int(part["partition"]), int(part["from_offset"]), row, row + int(part["trained"]),
                    int(part["to_offset"]), int(part["to_row"]), int(round_of[index]),
                )  # fmt: skip
