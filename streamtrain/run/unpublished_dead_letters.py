"""Dead letters of one publication: what ingest left in the arena's ring, and batches that were left out.

Used by the coordinator, in its publishing thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from streamtrain import _native
from streamtrain.run.round_log import Columns
from streamtrain.topics import dead_letters
from streamtrain.topics.dead_letters import Causes, DeadLetter, DeadRange
from streamtrain.topics.ring_structs import HEAD, HEADER_SIZES, ROWS
from streamtrain.topics.rounds import Structs
from streamtrain.topics.topic import Message

NameOf = Callable[[int], str]  # what a partition's records are of
_LEFT_OUT: dict[int, str] = {
    _native.Rejected.NOT_FINITE: (
        "batch left out: its loss, the parameters or the optimizer state were not finite after its step"
    ),
    _native.Rejected.CRASHED: "batch left out: workers died at it three times",
}
_WINDOW_ROWS = 10_000  # of the ceiling
_CEILING_FROM_ROWS = 1_000


class Letters:
    """The dead letters of a publication; `ring` holds those of the arena's ring, `entries` many, until it is released.

    Each letter is made when it is asked for: thousands of them take much more as Python objects than as bytes.
    """

    def __init__(self, ring: bytes, entries: int, columns: Columns, name_of: NameOf, run: int) -> None:
        self.ring, self.entries = ring, entries
        self._columns, self._name_of, self._run = columns, name_of, run
        self.causes = Causes()
        self.count = self.bytes = 0
        for letter in self:
            self.causes.add(letter)
            self.count += 1
            self.bytes += len(letter.value or b"")

    def __iter__(self) -> Iterator[DeadLetter]:
        yield from _letters(self.ring, self._name_of, self._run)
        yield from rejected_letters(self._columns, self._name_of, self._run)

    @classmethod
    def none(cls) -> Letters:
        """Returns the dead letters of a publication that has no rounds."""
        return cls(b"", 0, Columns.empty(), _nameless, 0)


class AllLetters:
    """The dead letters of several hosts, one host's after the other's."""

    def __init__(self, parts: Sequence[Letters]) -> None:
        self._parts = parts
        self.causes = Causes()
        for part in parts:
            self.causes.update(part.causes)
        self.count, self.bytes = sum(part.count for part in parts), sum(part.bytes for part in parts)

    def __iter__(self) -> Iterator[DeadLetter]:
        for part in self._parts:
            yield from part


class LettersFirst:
    """The messages of a transaction: the letters for `topic`, each encoded when its turn comes, then the others."""

    def __init__(self, letters: Letters | AllLetters, topic: str, others: Sequence[tuple[str, Message]]) -> None:
        self._letters, self._topic, self._others = letters, topic, others

    def __len__(self) -> int:
        return self._letters.count + len(self._others)

    def __iter__(self) -> Iterator[tuple[str, Message]]:
        for letter in self._letters:
            yield self._topic, dead_letters.message(letter)
        yield from self._others


class Ceiling:
    """A check of the newest rows, some thousand of them: whether too large a share of them is dead."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.rows = self.dead = 0  # of the window

    def passed(self, slots: Structs) -> bool:
        """Counts the rows of these slots."""
        if self.rows >= _WINDOW_ROWS:
            self.rows = self.dead = 0
        dead = int(slots["dead"].sum(dtype=np.int64))
        self.dead += dead
        self.rows += dead + int(slots["trained"].sum(dtype=np.int64))
        return self.rows >= _CEILING_FROM_ROWS and self.dead > self.share * self.rows


def publication_letters(
    end: _native.CoordinatorEnd, columns: Columns, last_round: int, name_of: NameOf, run: int
) -> Letters:
    """Returns the dead letters of the rounds up to `last_round`, whose log is in `columns`. They stay in the ring until
    it is released."""
    return Letters(*end.dead_letters(last_round), columns, name_of, run)


def unpublished_causes(end: _native.CoordinatorEnd, last_round: int) -> Causes:
    """Returns the causes of the dead letters that still wait in the ring."""
    causes = Causes()
    for letter in _letters(end.dead_letters(last_round)[0], _nameless, 0):
        causes.add(letter)
    return causes


def _nameless(partition: int) -> str:
    return ""


def _letters(ring: bytes, name_of: NameOf, run: int) -> Iterator[DeadLetter]:
    """One letter per record, in the order their first rows were met; a record's entries follow one another."""
    parts: list[DeadLetter] = []
    for part in _entries(ring, name_of, run):
        if parts and (parts[0].partition, parts[0].offset) != (part.partition, part.offset):
            yield _joined(parts)
            parts = []
        parts.append(part)
    if parts:
        yield _joined(parts)


def _joined(parts: list[DeadLetter]) -> DeadLetter:
    first = parts[0]
    if len(parts) == 1:
        return first
    return DeadLetter(
        topic=first.topic,
        partition=first.partition,
        offset=first.offset,
        rows=tuple(rows for part in parts for rows in part.rows),
        run=first.run,
        round=first.round,
        key=first.key,
        value=first.value,
        value_bytes=first.value_bytes,
        rows_left_out=sum(part.rows_left_out for part in parts),
        headers=first.headers,
        around_left_out=first.around_left_out,
    )


def _entries(ring: bytes, name_of: NameOf, run: int) -> Iterator[DeadLetter]:
    """Yields what each slot's pass over a record could not use. The first entry of a record in a round holds its key
    and bytes."""
    at = 0
    while at < len(ring):
        head = HEAD.read(ring, at)
        if head.partition == _native.SCHEMA_ENTRY:
            at += head.entry_bytes
            continue
        cursor = at + HEAD.size
        rows = []
        for _ in range(head.ranges):
            dead = ROWS.read(ring, cursor)
            reason_at = cursor + ROWS.size + dead.path_bytes
            path = ring[cursor + ROWS.size : reason_at].decode("utf-8", "replace")
            cursor = reason_at + dead.reason_bytes
            rows.append(DeadRange(dead.row_from, dead.row_to, path, ring[reason_at:cursor].decode("utf-8", "replace")))
        headers_at = cursor + head.key_bytes
        value_at = headers_at + head.header_bytes
        has_value = head.value_bytes or not head.record_bytes
        yield DeadLetter(
            topic=name_of(head.partition),
            partition=head.partition,
            offset=head.offset,
            rows=tuple(rows),
            run=run,
            round=head.round,
            key=ring[cursor:headers_at] if head.key_bytes else None,
            value=ring[value_at : value_at + head.value_bytes] if has_value else None,
            value_bytes=head.record_bytes,
            rows_left_out=head.rows_left_out,
            headers=tuple(_headers(ring, headers_at, value_at)),
            around_left_out=head.around_left_out,
        )
        at += head.entry_bytes


def _headers(ring: bytes, at: int, end: int) -> Iterator[tuple[str, bytes]]:
    while at < end:
        sizes = HEADER_SIZES.read(ring, at)
        name_at = at + HEADER_SIZES.size
        value_at = name_at + sizes.name_bytes
        at = value_at + sizes.value_bytes
        yield ring[name_at:value_at].decode("utf-8", "replace"), ring[value_at:at]


def rejected_letters(columns: Columns, name_of: NameOf, run: int) -> Iterable[DeadLetter]:
    """One letter, by reference, for each range of each batch that was left out."""
    rounds, slots, ranges = columns.rounds, columns.slots, columns.ranges
    if not slots["rejected"].any():
        return
    round_of = np.repeat(rounds["round"], rounds["slots"])
    starts = np.concatenate([[0], np.cumsum(slots["range_count"], dtype=np.int64)])
    for index in np.flatnonzero(slots["rejected"]):
        reason = _LEFT_OUT[int(slots["rejected"][index])]
        for part in ranges[starts[index] : starts[index + 1]]:
            if not part["trained"]:
                continue
            yield DeadLetter(
                topic=name_of(int(part["partition"])),
                partition=int(part["partition"]),
                offset=int(part["from_offset"]),
                rows=(DeadRange(int(part["from_row"]), int(part["from_row"]) + int(part["trained"]), "$", reason),),
                run=run,
                round=int(round_of[index]),
                until=(int(part["to_offset"]), int(part["to_row"])),
            )
