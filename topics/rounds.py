"""The rounds topic: what every round trained, in row order. One log per publication, in parts of one message each.

The columns are raw little-endian structs; RANGE_DTYPE is struct Range of native/memory/slot.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from streamtrain._native import RANGE_BYTES
from streamtrain.errors import CheckFailed
from streamtrain.topics._topic import MESSAGE_BYTES, Message, Topic
from streamtrain.topics._wire import DIGEST_BYTES, HEX_128_BIT, Reader, pack
from streamtrain.topics.snapshots import Run

WIRE_VERSION = 1
TOPIC = Topic(
    key="rounds",
    help="the round log: what was trained, in row order",
    config={"cleanup.policy": "delete", "max.message.bytes": "1048588"},
    fixed_partitions=True,
    wire_version=WIRE_VERSION,
)

RANGE_DTYPE = np.dtype(
    [
        ("from_offset", "<i8"), ("to_offset", "<i8"), ("from_row", "<i4"), ("to_row", "<i4"), ("partition", "<i4"),
        ("record_rows", "<i4"), ("trained", "<u4"), ("dead", "<u4"), ("filtered", "<u4"), ("tombstones", "<u4"),
        ("records", "<u4"), ("reserved", "<u4", (3,)),
    ]
)  # fmt: skip
SLOT_DTYPE = np.dtype(
    [
        ("slot", "<i8"), ("rows", "<u4"), ("trained", "<u4"), ("dead", "<u4"), ("filtered", "<u4"),
        ("tombstones", "<u4"), ("range_count", "<u4"), ("loss_sum", "<f8"), ("weight_sum", "<f8"), ("rejected", "u1"),
        ("reserved", "u1", (7,)),
    ]
)  # fmt: skip
ROUND_DTYPE = np.dtype(
    [
        ("round", "<i8"), ("first_slot", "<i8"), ("slots", "<u4"), ("workers", "<u4"), ("closed_by", "u1"),
        ("statistics_pass", "u1"), ("reserved", "u1", (6,)),
    ]
)  # fmt: skip
assert RANGE_DTYPE.itemsize == RANGE_BYTES and SLOT_DTYPE.itemsize == 56 and ROUND_DTYPE.itemsize == 32

_COLUMNS = {"rounds": ROUND_DTYPE, "slots": SLOT_DTYPE, "ranges": RANGE_DTYPE}
_HEADER_BYTES = 1_000  # room for a part's map besides its columns
_WHAT = "round log"
Structs = npt.NDArray[Any]


class ClosedBy(IntEnum):
    """Why a round ended."""

    SLOTS = 0  # averaging_frequency slots per worker
    INTERVAL = 1
    STOP = 2
    END = 3  # of a bounded range, or --max-rows


@dataclass(frozen=True)
class RoundLog:
    """The rounds between two published snapshots, as structured arrays in round, slot and row order.

    `version` and `digest` name the snapshot whose transaction carries the log. A part of a log has the same form,
    with a slice of each column; `part` of `parts` counts from 0.
    """

    job: str
    lineage: str
    run: Run
    version: int
    digest: bytes
    rounds: Structs
    slots: Structs
    ranges: Structs
    part: int = 0
    parts: int = 1

    @property
    def rows_trained(self) -> int:
        return int(self.slots["trained"].sum(dtype=np.int64))


def messages(log: RoundLog) -> tuple[Message, ...]:
    """The log as messages of at most MESSAGE_BYTES, in order; empty when there was no round."""
    check(log)
    if not len(log.rounds):
        return ()
    parts = _cut(log)
    return tuple(
        Message(f"{log.version}/{index}".encode(), _encode(log, columns, index, len(parts)))
        for index, columns in enumerate(parts)
    )


def _cut(log: RoundLog) -> list[dict[str, Structs]]:
    """Slices of the columns, whole structs, filled in the order rounds, slots, ranges."""
    room_bytes = MESSAGE_BYTES - _HEADER_BYTES
    parts: list[dict[str, Structs]] = [{}]
    left = room_bytes
    for name, dtype in _COLUMNS.items():
        column = getattr(log, name)
        at = 0
        while at < len(column):
            count = min(left // dtype.itemsize, len(column) - at)
            if count == 0:
                parts.append({})
                left = room_bytes
                continue
            parts[-1][name] = column[at : at + count]
            at += count
            left -= count * dtype.itemsize
    return parts


def _encode(log: RoundLog, columns: dict[str, Structs], part: int, parts: int) -> bytes:
    value = pack(
        {
            "wire": WIRE_VERSION,
            "job": log.job,
            "lineage": log.lineage,
            "run": {"number": log.run.number, "id": log.run.id},
            "first_round": int(log.rounds["round"][0]),
            "last_round": int(log.rounds["round"][-1]),
            "part": part,
            "parts": parts,
            "snapshot": {"version": log.version, "digest": log.digest},
            **{name: columns[name].tobytes() if name in columns else b"" for name in _COLUMNS},
        }
    )
    assert len(value) <= MESSAGE_BYTES
    return value


def decode(value: bytes) -> RoundLog:
    """One part; its columns are read-only views of `value`'s copy. CheckFailed says what is wrong with other bytes."""
    read = Reader.unpack(value, _WHAT, WIRE_VERSION, CheckFailed)
    run, snapshot = read.child("run"), read.child("snapshot")
    columns = {}
    for name, dtype in _COLUMNS.items():
        raw = read.binary(name)
        if len(raw) % dtype.itemsize:
            read.fail(name, f"a multiple of {dtype.itemsize} bytes", f"{len(raw)} bytes")
        columns[name] = np.frombuffer(raw, dtype)
    parts = read.integer("parts", 1, 2**31 - 1)
    return RoundLog(
        job=read.text("job"),
        lineage=read.hexadecimal("lineage", HEX_128_BIT),
        run=Run(run.integer("number", 1), run.hexadecimal("id", HEX_128_BIT)),
        version=snapshot.integer("version", 1),
        digest=snapshot.binary("digest", DIGEST_BYTES),
        part=read.integer("part", 0, parts - 1),
        parts=parts,
        rounds=columns["rounds"],
        slots=columns["slots"],
        ranges=columns["ranges"],
    )


def join(parts: Sequence[RoundLog]) -> RoundLog:
    """The whole log from all its parts in order; CheckFailed where one is missing or they do not fit together."""
    first = parts[0] if parts else None
    if first is None or [part.part for part in parts] != list(range(first.parts)):
        raise CheckFailed(f"{_WHAT}: expected every part in order, got {[(part.part, part.parts) for part in parts]}")
    identity = (first.job, first.lineage, first.run, first.version, first.digest, first.parts)
    for part in parts[1:]:
        if (part.job, part.lineage, part.run, part.version, part.digest, part.parts) != identity:
            raise CheckFailed(f"{_WHAT}: part {part.part} belongs to snapshot {part.version}, expected {first.version}")
    rounds, slots, ranges = (np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS)
    whole = RoundLog(first.job, first.lineage, first.run, first.version, first.digest, rounds, slots, ranges)
    check(whole)
    return whole


def check(log: RoundLog) -> None:
    """The columns agree with each other: rounds follow one another, their slots and ranges are all there."""
    where = f"{_WHAT} of {log.job} version {log.version}"
    for name, dtype in _COLUMNS.items():
        if getattr(log, name).dtype != dtype:
            raise CheckFailed(f"{where}: expected {name} as {dtype}, got {getattr(log, name).dtype}")
    numbers, counts = log.rounds["round"], log.rounds["slots"].astype(np.int64)
    if len(numbers) and not np.array_equal(numbers, np.arange(len(numbers)) + numbers[0]):
        raise CheckFailed(f"{where}: expected rounds in a row, got {numbers[:20].tolist()}")
    slots, ranges = int(counts.sum()), int(log.slots["range_count"].sum(dtype=np.int64))
    if slots != len(log.slots) or ranges != len(log.ranges):
        raise CheckFailed(
            f"{where}: expected {slots} slots and {ranges} ranges, got {len(log.slots)} and {len(log.ranges)}"
        )
    if len(numbers):
        firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        expected = np.arange(len(log.slots)) + np.repeat(log.rounds["first_slot"] - firsts, counts)
        if not np.array_equal(log.slots["slot"], expected):
            raise CheckFailed(f"{where}: expected slot numbers to count on from each round's first_slot")
