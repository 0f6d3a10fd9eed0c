"""The round log as its topic holds it: every part there, in order, and each log in itself consistent (guarantee 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamtrain._native import CloseReason
from streamtrain.checks.verify.verify_report import Check
from streamtrain.checks.verify.window_check import check_windows
from streamtrain.errors import CheckFailed
from streamtrain.kafka.clients import Message
from streamtrain.record_sources.source_kind import Topic
from streamtrain.topics import rounds
from streamtrain.topics.rounds import RoundLog

_ENDS = tuple(CloseReason)


@dataclass(frozen=True)
class Logs:
    """The logs in the order they were committed, `later` those of snapshots published since the newest was looked at.

    `cut`: retention has removed those before the first.
    """

    all: tuple[RoundLog, ...] = ()
    later: tuple[RoundLog, ...] = ()
    cut: bool = False

    def removed(self, version: int) -> bool:
        """Retention has removed the log of this version."""
        return self.cut and (not self.all or version < self.all[0].version)


def read_logs(job: str, topic: Topic | None, newest: int) -> tuple[Check, Logs]:
    """`newest`: the version of the newest snapshot."""
    check = Check("round log", "every part is there, and rows add up in batches and ranges")
    if topic is None:
        check.problems.append("the topic of the round log is not there")
        return check, Logs()
    found: list[RoundLog] = []
    parts: list[RoundLog] = []
    cut = topic.cut
    for message in topic.messages():
        where = f"{topic.name}@{message.offset}"
        part = _part(check, job, where, message)
        if part is None:
            continue
        if parts and (part.part == 0 or part.version != parts[-1].version):
            check.problems.append(f"{where}: the log of snapshot {parts[-1].version} ends after part {parts[-1].part}")
            parts = []
        if part.part != len(parts):
            begun = cut and not found and not parts  # retention has taken its first parts
            check.expect(begun, f"{where}: expected part {len(parts)} of a log, got part {part.part} of {part.version}")
            continue
        parts.append(part)
        if part.part == part.parts - 1:
            found += _joined(check, where, parts)
            parts = []
    check.expect(not parts, f"{topic.name}: the last log ends before its last part")
    logs = [log for log in found if log.version <= newest]
    for log in logs:
        _check_rows(check, log)
        _check_rounds(check, log)
    check_windows(check, logs)
    check.span = f"{len(logs)} logs, {sum(len(log.rounds) for log in logs)} rounds"
    return check, Logs(tuple(logs), tuple(log for log in found if log.version > newest), cut)


def _part(check: Check, job: str, where: str, message: Message) -> RoundLog | None:
    if message.value is None:
        check.problems.append(f"{where}: a message without a value")
        return None
    try:
        part = rounds.decode(message.value)
    except CheckFailed as error:
        check.problems.append(f"{where}: {error}")
        return None
    check.expect(part.job == job, f"{where}: a log of job {part.job}")
    check.expect(rounds.encode(part) == message.value, f"{where}: bytes no trainer writes")
    check.expect(
        message.key == f"{part.version}/{part.part}".encode(), f"{where}: key {message.key!r} is not its log's"
    )
    return part


def _joined(check: Check, where: str, parts: list[RoundLog]) -> Iterator[RoundLog]:
    try:
        yield rounds.join(parts)
    except CheckFailed as error:
        check.problems.append(f"{where}: {error}")


def _check_rows(check: Check, log: RoundLog) -> None:
    """Batches and ranges count the same rows; a batch left out is dead as a whole."""
    where = f"snapshot {log.version}"
    slots, ranges = log.slots, log.ranges
    starts = np.concatenate([[0], np.cumsum(slots["range_count"], dtype=np.int64)])
    for name, column in (("rows", "trained"), ("filtered", "filtered"), ("tombstones", "tombstones")):
        same = np.array_equal(_sums(ranges[column], starts), slots[name].astype(np.int64))
        check.expect(same, f"{where}: {name} of batches and ranges differ")
    rows = slots["rows"].astype(np.int64)
    moved = np.where(slots["rejected"] != 0, rows, 0)
    whole = np.array_equal(slots["trained"], rows - moved)
    check.expect(whole, f"{where}: a batch's rows are not all trained, or all dead where it was left out")
    dead = np.array_equal(slots["dead"], _sums(ranges["dead"], starts) + moved)
    check.expect(dead, f"{where}: dead rows of batches and ranges differ")
    reserved = [column["reserved"].any() for column in (log.rounds, slots, ranges)]
    check.expect(not any(reserved) and bool((slots["rejected"] <= 2).all()), f"{where}: bytes no trainer writes")


def _sums(column: Any, starts: Any) -> Any:
    cumulated = np.concatenate([[0], np.cumsum(column, dtype=np.int64)])
    return cumulated[starts[1:]] - cumulated[starts[:-1]]


def _check_rounds(check: Check, log: RoundLog) -> None:
    """Why each round ended, and the statistics pass, which is a lineage's round 0 alone."""
    ends = np.cumsum(log.rounds["slots"], dtype=np.int64)
    dead = np.diff(np.concatenate([[0], np.cumsum(log.slots["dead"], dtype=np.int64)])[np.concatenate([[0], ends])])
    for index, round_ in enumerate(log.rounds):
        number = int(round_["round"])
        where = f"snapshot {log.version} round {number}"
        full = int(round_["slots"]) == log.terms_at(number).round_slots
        fits = full or dead[index] > 0  # a flood of dead rows ends a round as well
        right = fits if round_["closed_by"] == CloseReason.FULL else not full and round_["closed_by"] in _ENDS
        check.expect(bool(right), f"{where}: it did not end because of {int(round_['closed_by'])}")
        check.expect(int(round_["statistics_pass"]) == (number == 0), f"{where}: statistics pass at another round")
