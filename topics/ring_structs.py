"""The structs that ingest writes to the arena's ring of dead letters (native/ring/dead_letters.h)."""

from __future__ import annotations

import struct
from collections import Counter, namedtuple
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.errors import CheckFailed

_CODES = {np.dtype(code): code for code in "qQiI"}


class RingStruct:
    """One of them, read by the names of its fields."""

    def __init__(self, name: str, layout: Any) -> None:
        fields = np.dtype(layout).fields or {}
        self._struct = struct.Struct("<" + "".join(_CODES[dtype] for dtype, *_ in fields.values()))
        self._fields: Any = namedtuple(name, fields)  # type: ignore[misc]
        self.size = self._struct.size

    def read(self, raw: bytes | bytearray, at: int) -> Any:
        """The one that begins at byte `at`."""
        return self._fields._make(self._struct.unpack_from(raw, at))

    def put(self, raw: bytearray, at: int, **values: int) -> None:
        """Puts other values into the one that begins at byte `at`."""
        self._struct.pack_into(raw, at, *self.read(raw, at)._replace(**values))


HEAD = RingStruct("Head", _native.DEAD_LETTER_HEAD)
ROWS = RingStruct("Rows", _native.DEAD_LETTER_ROWS)
HEADER_SIZES = RingStruct("HeaderSizes", _native.DEAD_LETTER_HEADER_SIZES)


def numbered(ring: bytes, round_: int) -> bytes:
    """Returns the entries of a ring as those of that round."""
    raw, at = bytearray(ring), 0
    while at < len(raw):
        HEAD.put(raw, at, round=round_)
        at += HEAD.read(raw, at).entry_bytes
    return bytes(raw)


def dead_rows(ring: bytes, entries: int, round_: int) -> dict[int, int]:
    """Returns the dead rows of so many entries, all of one round, by partition. CheckFailed for bytes that are not
    such entries: those of a ring may come from another machine."""
    found: Counter[int] = Counter()
    at = count = 0
    while at < len(ring):
        end, head = at, None
        if at + HEAD.size <= len(ring):
            head = HEAD.read(ring, at)
            end = at + head.entry_bytes
        if head is None or end % 8 or not at + HEAD.size <= end <= len(ring) or head.round != round_:
            raise CheckFailed(f"dead letters: expected a whole entry of round {round_} at byte {at}")
        rows, cursor = head.rows_left_out, at + HEAD.size
        for _ in range(head.ranges):
            if cursor + ROWS.size > end:
                raise CheckFailed(f"dead letters: expected {head.ranges} ranges of rows in the entry at byte {at}")
            dead = ROWS.read(ring, cursor)
            rows += max(dead.row_to - dead.row_from, 0)
            cursor += ROWS.size + dead.path_bytes + dead.reason_bytes
        if not 0 <= end - cursor - head.key_bytes - head.header_bytes - head.value_bytes < 8:
            raise CheckFailed(f"dead letters: the parts of the entry at byte {at} do not fill it")
        if head.partition != _native.SCHEMA_ENTRY:
            found[head.partition] += rows
        at, count = end, count + 1
    if count != entries:
        raise CheckFailed(f"dead letters: expected {entries} entries, got {count}")
    return dict(found)
