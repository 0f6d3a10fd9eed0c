"""Cuts records into batches and rounds as native/train/slot_filler.cpp does, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain._native import CloseReason
from streamtrain.columns.plan import native_plan
from streamtrain.job import Job
from streamtrain.kafka.clients import Message
from streamtrain.run.round_log import Columns
from streamtrain.topics.dead_letters import DeadLetter, DeadRange
from streamtrain.topics.manifest import Position
from streamtrain.topics.rounds import RANGE_DTYPE, ROUND_DTYPE, SLOT_DTYPE
from tests.checks.verify.topics_in_memory import Partition


@dataclass
class _Slot:
    round: int
    rows: int = 0
    newest_event_ms: int = -1
    newest_timestamp_ms: int = -1
    ranges: list[Any] = field(default_factory=list)


def of_records(letters: list[DeadLetter]) -> list[DeadLetter]:
    records: dict[tuple[int, int], list[DeadLetter]] = {}
    for letter in letters:
        records.setdefault((letter.partition, letter.offset), []).append(letter)
    return [replace(each[0], rows=sum((part.rows for part in each), ())) for each in records.values()]


class Ingest:
    """One run's. `positions` are moved as it goes."""

    def __init__(self, job: Job, run: int, positions: list[Position], first_round: int) -> None:
        self._topic, self._run = str(job.topic("records").name), run
        self._batch_rows, self._round_slots = job.train.batch_rows, job.train.round_slots
        self._workers = job.train.workers
        layout = _native.SlotLayout.make(self._batch_rows, 64, job.schema.block_specs())
        self._buffer = np.zeros(layout.slot_bytes, np.uint8)
        self._filler = _native.BatchFiller(job.records.format, native_plan(job.schema, layout))
        self._positions = positions
        self._round, self._next_slot = first_round, 0
        self._slot: _Slot | None = None
        self._closed: list[_Slot] = []
        self._letters: list[DeadLetter] = []

    def read(self, partitions: list[Partition], turn: int = 5) -> None:
        """Reads `turn` records of a partition at a time, up to the partitions' ends."""
        while len(self._positions) < len(partitions):
            self._positions.append(Position(0))
        waiting = [
            [message for message in partition.messages if message.offset >= position.offset]
            for partition, position in zip(partitions, self._positions, strict=False)
        ]
        while any(waiting):
            for number, messages in enumerate(waiting):
                for message in messages[:turn]:
                    self._take(message)
                waiting[number] = messages[turn:]
        for number, partition in enumerate(partitions):
            if partition.end > self._positions[number].offset:
                part = self._range(number)
                part["to_offset"], part["to_row"] = partition.end, 0
                self._positions[number] = Position(partition.end)

    def _range(self, number: int) -> Any:
        if self._slot is None:
            self._slot = _Slot(self._round)
            self._filler.open(self._buffer)
        ranges = self._slot.ranges
        if not ranges or ranges[-1]["partition"] != number:
            part = np.zeros(1, RANGE_DTYPE)[0]
            part["partition"], part["record_rows"] = number, -1
            for end in ("from", "to"):
                part[f"{end}_offset"], part[f"{end}_row"] = self._positions[number]
            ranges.append(part)
        return ranges[-1]

    def _take(self, message: Message) -> None:
        number, position = message.partition, self._positions[message.partition]
        if message.value is None:
            part = self._range(number)
            part["tombstones"] += 1
            self._end_record(part, message)
            return
        from_row = position.row if position.offset == message.offset else 0
        begun, done = False, False
        while not done:
            part = self._range(number)
            assert self._slot is not None
            done = self._filler.more() if begun else self._filler.fill(message.value, from_row)
            begun, tally = True, self._filler.take_tally()
            self._slot.rows = self._filler.rows
            self._slot.newest_event_ms = max(self._slot.newest_event_ms, tally.newest_event_time_ms)
            self._slot.newest_timestamp_ms = max(self._slot.newest_timestamp_ms, message.timestamp_ms)
            for name in ("trained", "dead", "filtered"):
                part[name] += getattr(tally, name)
            if tally.dead_rows:
                self._report(message, tally.dead_rows)
            if done:
                part["record_rows"] = self._filler.record_rows if from_row else part["record_rows"]
                self._end_record(part, message)
            else:
                from_row = self._filler.record_rows
                part["to_offset"], part["to_row"] = message.offset, from_row
                self._positions[number] = Position(message.offset, from_row)
            if self._slot.rows == self._batch_rows:
                self._publish_slot()

    def _end_record(self, part: Any, message: Message) -> None:
        part["to_offset"], part["to_row"] = message.offset + 1, 0
        part["records"] += 1
        self._positions[message.partition] = Position(message.offset + 1)

    def _report(self, message: Message, dead_rows: Any) -> None:
        assert self._slot is not None and message.value is not None
        rows, run = tuple(DeadRange(*dead[:4]) for dead in dead_rows), (self._run, self._slot.round)
        record = message.key, message.value, len(message.value)
        self._letters.append(DeadLetter(self._topic, message.partition, message.offset, rows, *run, *record))

    def _open(self) -> list[_Slot]:
        return [slot for slot in self._closed if slot.round == self._round]

    def _publish_slot(self) -> None:
        assert self._slot is not None
        self._closed.append(self._slot)
        self._slot = None
        if len(self._open()) == self._round_slots:
            self._round += 1

    def publish(
        self, closed_by: CloseReason = CloseReason.INTERVAL, rejected: int | None = None
    ) -> tuple[Columns, list[DeadLetter]]:
        """Ends the open round and gives what has gathered since the last call; batch `rejected` of it was left out."""
        if self._slot is not None:
            self._publish_slot()
        if self._open():
            self._round += 1
        closed, self._closed = self._closed, []
        letters, self._letters = of_records(self._letters), []
        columns = Columns(*self._columns(closed, closed_by, rejected))
        self._next_slot += len(closed)
        return columns, letters

    def _columns(self, closed: list[_Slot], closed_by: CloseReason, rejected: int | None) -> Iterator[Any]:
        numbers = sorted({slot.round for slot in closed})
        rounds, slots = np.zeros(len(numbers), ROUND_DTYPE), np.zeros(len(closed), SLOT_DTYPE)
        for index, slot in enumerate(closed):
            ranges, out = slot.ranges, index == rejected
            slots[index]["slot"], slots[index]["rows"] = self._next_slot + index, slot.rows
            slots[index]["range_count"], slots[index]["rejected"] = len(ranges), int(out)
            slots[index]["trained"] = 0 if out else slot.rows
            slots[index]["loss_sum"], slots[index]["weight_sum"] = 0.5 * slot.rows, slot.rows
            for name in ("dead", "filtered", "tombstones"):
                slots[index][name] = sum(int(part[name]) for part in ranges)
            slots[index]["dead"] += slot.rows if out else 0
        for index, number in enumerate(numbers):
            mine = [at for at, slot in enumerate(closed) if slot.round == number]
            full = len(mine) == self._round_slots
            events = max(closed[at].newest_event_ms for at in mine)
            rounds[index]["round"], rounds[index]["first_slot"] = number, self._next_slot + mine[0]
            rounds[index]["slots"], rounds[index]["workers"] = len(mine), self._workers
            rounds[index]["closed_by"] = CloseReason.FULL if full else closed_by
            rounds[index]["statistics_pass"] = number == 0
            timestamps = [closed[at].newest_timestamp_ms for at in mine]
            rounds[index]["newest_event_ms"] = events if events >= 0 else max(timestamps)
        yield rounds
        yield slots
        yield np.array([part for slot in closed for part in slot.ranges], RANGE_DTYPE)
