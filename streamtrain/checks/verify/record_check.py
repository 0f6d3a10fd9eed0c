"""Reads the records again that the ranges speak of (guarantees 1 and 2): holes hide none, and all their rows are told.

With `fast` only where ranges leave holes or end inside a record; else every record that is still there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from streamtrain.checks.verify.decoding import Decoders, Fates, RecordDecoder
from streamtrain.checks.verify.expected_dead_letters import Waiting
from streamtrain.checks.verify.logs import Logs
from streamtrain.checks.verify.sources import Sources
from streamtrain.checks.verify.verify_report import Check
from streamtrain.kafka.clients import Message
from streamtrain.record_sources.source_kind import Partition, source_of
from streamtrain.topics.rounds import RoundLog
from streamtrain.topics.terms import Terms

_RECORDS = 1_000  # decoded at once


@dataclass
class RoundTime:
    """The newest event time of a round, gathered from the records of its ranges."""

    where: str
    expected_ms: int
    ranges: int  # not yet read
    event_ms: int = -1
    timestamp_ms: int = -1
    compacted: bool = False  # not all of its records are there

    def read(self, event_ms: int, timestamp_ms: int, compacted: bool) -> None:
        self.ranges -= 1
        self.compacted |= compacted
        self.event_ms = max(self.event_ms, event_ms)
        self.timestamp_ms = max(self.timestamp_ms, timestamp_ms)

    def problem(self) -> str:
        """Once all of its records were read: what is wrong, or nothing."""
        newest_ms = self.event_ms if self.event_ms >= 0 else self.timestamp_ms
        if newest_ms == self.expected_ms or (self.compacted and newest_ms < self.expected_ms):
            return ""
        return f"{self.where}: its newest event is of {newest_ms} ms, the round log says {self.expected_ms}"


def _times(log: RoundLog) -> list[RoundTime]:
    """For each range of a log, its round's; the same object for all of a round."""
    of_rounds = [RoundTime(f"round {int(each['round'])}", int(each["newest_event_ms"]), 0) for each in log.rounds]
    indices = np.repeat(np.repeat(np.arange(len(of_rounds)), log.rounds["slots"]), log.slots["range_count"])
    for index in indices:
        of_rounds[index].ranges += 1
    return [of_rounds[index] for index in indices]


@dataclass(frozen=True)
class _Stretch:
    """Ranges of one partition that follow one another, under the same format, columns and schemas."""

    partition: int
    log: RoundLog  # the first
    terms: Terms
    ranges: list[tuple[Any, RoundTime]]


def check_records(sources: Sources, logs: Logs, decoders: Decoders, waiting: Waiting, fast: bool) -> Check:
    check = Check("records", "the records read again are those the ranges tell of, with all their rows")
    read = _Reading(check, waiting)
    for stretch in _stretches(logs, fast):
        where = f"partition {stretch.partition} offsets {_begin(stretch)} to {_end(stretch)}"
        topic = sources.of(stretch.terms)
        if topic is None:
            check.not_checkable.append(f"{where}: {source_of(stretch.terms.topic_id).gone}")
            continue
        decoder = decoders.of(stretch.log, stretch.terms)
        if decoder is None:
            check.not_checkable.append(f"{where}: no manifest holds the columns they were read with")
        elif stretch.partition < len(topic.partitions):
            compacted = read.stretch(topic.partitions[stretch.partition], stretch, decoder, topic.compacted)
            if compacted:
                check.not_checkable.append(f"{where}: {compacted} records compacted (cleanup.policy of {topic.name})")
        else:
            check.problems.append(f"{where}: there is no such partition")
    check.span = f"{read.records} records, {read.rows} rows read again"
    if fast:
        check.span += "; whole records not (--fast)"
    return check


def _begin(stretch: _Stretch) -> int:
    return int(stretch.ranges[0][0]["from_offset"])


def _end(stretch: _Stretch) -> int:
    return int(stretch.ranges[-1][0]["to_offset"])


def _stretches(logs: Logs, fast: bool) -> Iterator[_Stretch]:
    for _, group in groupby(logs.all, key=lambda log: log.lineage):
        same = [(log, _times(log)) for log in group]
        partitions = np.unique(np.concatenate([log.ranges["partition"] for log, _ in same]))
        for partition in partitions.tolist():
            yield from _of_partition(same, partition, fast)


def _of_partition(logs: list[tuple[RoundLog, list[RoundTime]]], partition: int, fast: bool) -> Iterator[_Stretch]:
    current: _Stretch | None = None
    for log, times in logs:
        terms = log.terms[-1]
        is_dense = source_of(terms.topic_id).is_dense
        for index in np.flatnonzero(log.ranges["partition"] == partition):
            part = log.ranges[index]
            begin = (int(part["from_offset"]), int(part["from_row"]))
            if current is not None and not (_follows(current, begin) and _read_alike(current, log)):
                yield current
                current = None
            if current is None and fast and _is_whole(part, is_dense):
                continue
            current = _Stretch(partition, log, terms, []) if current is None else current
            current.ranges.append((part, times[index]))
            if fast and not int(part["to_row"]):
                yield current
                current = None
    if current is not None:
        yield current


def _follows(stretch: _Stretch, begin: tuple[int, int]) -> bool:
    last, _ = stretch.ranges[-1]
    return (int(last["to_offset"]), int(last["to_row"])) == begin


def _read_alike(stretch: _Stretch, log: RoundLog) -> bool:
    one, other = stretch.terms, log.terms[-1]
    if (one.topic_id, one.format, one.columns_digest) != (other.topic_id, other.format, other.columns_digest):
        return False
    return stretch.log.schemas.tobytes() == log.schemas.tobytes()


def _is_whole(part: Any, is_dense: bool) -> bool:
    """It begins and ends between records, and leaves no hole: what --fast does not read again."""
    dense = is_dense or int(part["to_offset"]) - int(part["from_offset"]) == int(part["records"])
    return dense and not int(part["from_row"]) and not int(part["to_row"])


class _Reading:
    """Goes through stretches and the messages they tell of, side by side."""

    def __init__(self, check: Check, waiting: Waiting) -> None:
        self._check = check
        self._waiting = waiting
        self.records = self.rows = 0

    def stretch(self, partition: Partition, stretch: _Stretch, decoder: RecordDecoder, may_compact: bool) -> int:
        """Returns how many of the stretch's records were compacted away.

        That is a problem unless the topic's policy may do so."""
        ranges = [each for each in stretch.ranges if int(each[0]["from_offset"]) >= partition.low]
        if len(ranges) < len(stretch.ranges):
            until = min(_end(stretch), partition.low)
            self._check.not_checkable.append(
                f"partition {stretch.partition} offsets {_begin(stretch)} to {until}: removed by retention"
            )
        if not ranges:
            return 0
        last, _ = ranges[-1]
        end = int(last["to_offset"]) + (int(last["to_row"]) > 0)
        begin, identity = int(ranges[0][0]["from_offset"]), stretch.terms.topic_id
        messages, compacted = _Ahead(partition.read(begin, end)), 0
        where = f"partition {stretch.partition}"
        for part, time in ranges:
            compacted += self._range(where, part, time, identity, messages, decoder, may_compact)
            problem = "" if time.ranges else time.problem()
            self._check.expect(not problem, problem)
        self._waiting.check_met(self._check, identity, stretch.partition, begin, end, may_compact)
        return compacted

    def _range(
        self,
        where: str,
        part: Any,
        time: RoundTime,
        identity: str,
        messages: _Ahead,
        decoder: RecordDecoder,
        may_compact: bool,
    ) -> int:
        """Returns how many of the range's records were compacted away."""
        begin = int(part["from_offset"]), int(part["from_row"])
        end = int(part["to_offset"]), int(part["to_row"])
        fates, found = Fates(), {"records": 0, "tombstones": 0, "record_rows": -1}
        whole: list[Message] = []
        newest_ms, cut_is_there = -1, end[1] == 0
        while (message := messages.peek()) is not None and (message.offset, 0) < end:
            self._waiting.meet(self._check, identity, message)
            from_row = begin[1] if message.offset == begin[0] else 0
            newest_ms = newest_ms if message.value is None else max(newest_ms, message.timestamp_ms)
            if message.offset == end[0]:
                self._within(decoder, message, from_row, end[1], fates)
                cut_is_there = True
                break
            messages.next()
            self.records += 1
            found["records"] += 1
            if message.value is None:
                found["tombstones"] += 1
            elif from_row:
                found["record_rows"] = decoder.count_from(message, from_row, fates)
            else:
                whole.append(message)
            if len(whole) == _RECORDS:
                decoder.count(whole, fates)
                whole = []
        decoder.count(whole, fates)
        self.rows += fates.rows
        compacted = max(0, int(part["records"]) - found["records"]) if may_compact else 0
        lacking = may_compact and (compacted > 0 or not cut_is_there)  # the next range counts a record that is cut
        time.read(fates.newest_event_ms, newest_ms, lacking)
        found.update(trained=fates.trained, dead=fates.dead, filtered=fates.filtered)
        for name, count in found.items():
            expected = int(part[name])
            self._check.expect(
                expected == count or (lacking and count < expected),
                f"{where} {begin} to {end}: {name} of the records are {count}, the round log says {expected}",
            )
        return compacted

    @staticmethod
    def _within(decoder: RecordDecoder, message: Message, from_row: int, to_row: int, fates: Fates) -> None:
        """Adds the rows [from_row, to_row) of a record that the next range goes on with."""
        if message.value is None:
            return
        whole, rest = Fates(), Fates()
        decoder.count_from(message, from_row, whole)
        decoder.count_from(message, to_row, rest)
        trained = whole.trained - rest.trained
        newest_ms = decoder.newest_event_ms(message, from_row, trained)
        fates.add(trained, whole.dead - rest.dead, whole.filtered - rest.filtered, newest_ms)


class _Ahead:
    """Messages with a look at the next one."""

    def __init__(self, messages: Iterator[Message]) -> None:
        self._messages = messages
        self._next = next(messages, None)

    def peek(self) -> Message | None:
        return self._next

    def next(self) -> None:
        self._next = next(self._messages, None)
