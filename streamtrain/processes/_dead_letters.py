"""Dead letters of one publication: what ingest sent through the arena's ring, and batches that were left out.

Used by the coordinator.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from streamtrain.topics.dead_letters import DeadLetter, DeadRange
from streamtrain.topics.rounds import Structs

_HEAD = struct.Struct("<QqqqqiIIIQ")  # DeadLetterHead of native/memory/dead_letter_ring.h
_ROWS = struct.Struct("<qqIII")
assert _HEAD.size == 64

_REJECTED = {
    1: "batch left out: its loss, the parameters or the optimizer state were not finite after its step",
    2: "batch left out: workers died at it three times",
}


@dataclass(frozen=True)
class Piece:
    """What one slot's pass over a record could not use."""

    round: int
    slot: int
    partition: int
    offset: int
    rows: tuple[DeadRange, ...]
    key: bytes | None
    value: bytes | None
    record_bytes: int

    @property
    def bytes(self) -> int:
        return 256 + len(self.value or b"")


def pieces(ring: bytes) -> Iterator[Piece]:
    """The entries in the bytes that RoundLogThread.take() gave."""
    at = 0
    while at < len(ring):
        head = _HEAD.unpack_from(ring, at)
        size, round_, slot, offset, _, partition, ranges, key_bytes, value_bytes, record_bytes = head
        cursor = at + _HEAD.size
        rows = []
        for _ in range(ranges):
            row_from, row_to, _, path_bytes, reason_bytes = _ROWS.unpack_from(ring, cursor)
            cursor += _ROWS.size
            path = ring[cursor : cursor + path_bytes]
            reason = ring[cursor + path_bytes : cursor + path_bytes + reason_bytes]
            cursor += path_bytes + reason_bytes
            rows.append(DeadRange(row_from, row_to, path.decode("utf-8", "replace"), reason.decode("utf-8", "replace")))
        key = ring[cursor : cursor + key_bytes] if key_bytes else None
        value = ring[cursor + key_bytes : cursor + key_bytes + value_bytes] if value_bytes or not record_bytes else None
        yield Piece(round_, slot, partition, offset, tuple(rows), key, value, record_bytes)
        at += size


def letters(found: Iterable[Piece], topic: str, run: int) -> list[DeadLetter]:
    """One letter per record, in the order its first rows were met."""
    records: dict[tuple[int, int], list[Piece]] = {}
    for piece in found:
        records.setdefault((piece.partition, piece.offset), []).append(piece)
    return [
        DeadLetter(
            topic=topic,
            partition=partition,
            offset=offset,
            rows=tuple(rows for piece in parts for rows in piece.rows),
            run=run,
            round=parts[0].round,
            key=parts[0].key,
            value=next((piece.value for piece in parts if piece.value is not None), None),
            value_bytes=parts[0].record_bytes,
        )
        for (partition, offset), parts in records.items()
    ]


def rejected_letters(rounds: Structs, slots: Structs, ranges: Structs, topic: str, run: int) -> list[DeadLetter]:
    """One letter, by reference, for each range of each batch that was left out."""
    found: list[DeadLetter] = []
    if not slots["rejected"].any():
        return found
    round_of = np.repeat(rounds["round"], rounds["slots"])
    starts = np.concatenate([[0], np.cumsum(slots["range_count"], dtype=np.int64)])
    for index in np.flatnonzero(slots["rejected"]):
        reason = _REJECTED[int(slots["rejected"][index])]
        for part in ranges[starts[index] : starts[index + 1]]:
            if not part["trained"]:
                continue
            rows = DeadRange(int(part["from_row"]), int(part["from_row"]) + int(part["trained"]), "$", reason)
            found.append(
                DeadLetter(
                    topic=topic,
                    partition=int(part["partition"]),
                    offset=int(part["from_offset"]),
                    rows=(rows,),
                    run=run,
                    round=int(round_of[index]),
                    until=(int(part["to_offset"]), int(part["to_row"])),
                )
            )
    return found


def reasons(found: Iterable[DeadLetter]) -> Counter[str]:
    """Rows by "path: reason", for a ceiling's message and the metrics."""
    counts: Counter[str] = Counter()
    for letter in found:
        for rows in letter.rows:
            counts[f"{rows.path}: {rows.reason}"] += rows.row_to - rows.row_from
    return counts
