"""The round log as its topic holds it: every part there, in order, and each log in itself consistent (guarantee 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from streamtrain.checks.verify.verify_report import Check
from streamtrain.checks.verify.window_check import check_windows
from streamtrain.errors import CheckFailed
from streamtrain.kafka.clients import Message
from streamtrain.record_sources.source_kind import Topic
from streamtrain.topics import rounds
from streamtrain.topics.log_rules import miscounted, misended, where_of
from streamtrain.topics.publication_logs import RoundLogs
from streamtrain.topics.rounds import RoundLog


@dataclass(frozen=True)
class Logs:
    """The logs of publications in the order they were committed, `later` those of snapshots published since the newest
    was looked at.

    `cut`: retention has removed those before the first.
    """

    publications: tuple[RoundLogs, ...] = ()
    later: tuple[RoundLog, ...] = ()
    cut: bool = False

    @cached_property
    def all(self) -> tuple[RoundLog, ...]:
        """Every log of the publications."""
        return tuple(log for logs in self.publications for log in logs)

    def removed(self, version: int) -> bool:
        """Retention has removed the log of this version."""
        return self.cut and (not self.publications or version < self.publications[0].version)


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
        if parts and (part.part == 0 or _place(part) != _place(parts[-1])):
            check.problems.append(f"{where}: the log of {where_of(parts[-1])} ends after part {parts[-1].part}")
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
    publications = list(_publications(check, [log for log in found if log.version <= newest], cut))
    logs = Logs(tuple(publications), tuple(log for log in found if log.version > newest), cut)
    for log in logs.all:
        check.problems += [*miscounted(log), *misended(log)]
    check_windows(check, publications)
    check.span = f"{len(logs.all)} logs, {sum(len(each.rounds) for each in publications)} rounds"
    return check, logs


def _place(log: RoundLog) -> tuple[int, int]:
    return log.version, log.contribution


def _publications(check: Check, logs: list[RoundLog], cut: bool) -> Iterator[RoundLogs]:
    """Yields the publications whose logs are all there and go together."""
    for at, (version, group) in enumerate(groupby(logs, key=lambda log: log.version)):
        each = tuple(group)
        if cut and at == 0 and each[0].contribution > 0:
            continue  # retention has taken its first logs
        try:
            yield RoundLogs(each)
        except CheckFailed as error:
            check.problems.append(f"snapshot {version}: {error}")


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
        message.key == rounds.message_key(part, part.part), f"{where}: key {message.key!r} is not its log's"
    )
    return part


def _joined(check: Check, where: str, parts: list[RoundLog]) -> Iterator[RoundLog]:
    try:
        yield rounds.join(parts)
    except CheckFailed as error:
        check.problems.append(f"{where}: {error}")
