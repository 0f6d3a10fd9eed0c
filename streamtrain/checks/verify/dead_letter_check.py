"""Guarantee 2 across topics: every dead row of the round log has its dead letter, with its place, bytes and reason."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np

from streamtrain.checks.verify.decoding import Decoders
from streamtrain.checks.verify.expected_dead_letters import LogTally, Waiting, reference
from streamtrain.checks.verify.logs import Logs
from streamtrain.checks.verify.sources import Sources
from streamtrain.checks.verify.topics import ReadTopics
from streamtrain.checks.verify.verify_report import Check
from streamtrain.errors import CheckFailed
from streamtrain.kafka.clients import Message
from streamtrain.topics import dead_letters
from streamtrain.topics.dead_letters import DeadLetter


def check_dead_letters(
    topics: ReadTopics, logs: Logs, newest: int, decoders: Decoders, sources: Sources
) -> tuple[Check, Waiting]:
    """Also the letters whose records are to be compared with them when they are read again."""
    check = Check("dead letters", "each row that was not trained is a dead letter, with its place, bytes and reason")
    letters = _Letters(check, topics, logs, decoders, sources)
    rows = 0
    topic = topics.dead_letters
    removed_until = 0  # versions whose letters retention may have taken
    for partition in topic.partitions if topic else ():
        first = newest if partition.low > 0 else 0
        for message in partition.read(partition.low, partition.end):
            letter, version = letters.take(message)
            rows += letter.row_count if letter else 0
            first = min(first, version) if version is not None else first
        removed_until = max(removed_until, first)
    letters.compare(removed_until)
    check.span = f"{rows} rows of dead letters, {len(logs.publications)} publications"
    return check, letters.waiting


class _Letters:
    def __init__(self, check: Check, topics: ReadTopics, logs: Logs, decoders: Decoders, sources: Sources) -> None:
        self._check = check
        self._topics = topics
        self._logs = logs
        self._decoders = decoders
        self._sources = sources
        self._tallies = [LogTally(log) for log in logs.all]
        self._by_run: dict[int, list[LogTally]] = {}
        for tally in (*self._tallies, *map(LogTally, logs.later)):
            self._by_run.setdefault(tally.log.run.number, []).append(tally)
        self.waiting = Waiting()

    def take(self, message: Message) -> tuple[DeadLetter | None, int | None]:
        """The next letter, and the version of the snapshot whose round log it belongs to."""
        topic = self._topics.dead_letters
        assert topic is not None
        where = f"{topic.name}[{message.partition}]@{message.offset}"
        headers = [(name, value or b"") for name, value in message.headers]
        try:
            letter = dead_letters.decode(message.key, message.value, headers)
        except CheckFailed as error:
            self._check.problems.append(f"{where}: {error}")
            return None, None
        written = dead_letters.message(letter)
        same = (written.key, written.value, list(written.headers)) == (message.key, message.value, headers)
        self._check.expect(same, f"{where}: bytes no trainer writes")
        tally = self._log_of(letter)
        if tally is None:
            first = self._logs.all[0] if self._logs.all else None
            older = self._logs.cut and (first is None or letter.run <= first.run.number)
            if older:
                self._check.not_checkable.append(f"{where}: its round log is removed by retention")
            self._check.expect(older, f"{where}: of run {letter.run} round {letter.round}, which was never published")
            return letter, None
        for text in self._wrong(where, letter, tally):
            self._check.problems.append(f"{where}: {text}")
        return letter, tally.log.version

    def _log_of(self, letter: DeadLetter) -> LogTally | None:
        """The log of its run that holds its round; of several hosts', the one with its partition or else the first."""
        tallies = self._by_run.get(letter.run, [])
        index = bisect_right(tallies, letter.round, key=lambda each: int(each.log.rounds["round"][0])) - 1
        if index < 0 or letter.round > int(tallies[index].log.rounds["round"][-1]):
            return None
        while tallies[index].log.contribution > 0 and not tallies[index].has(letter.partition):
            index -= 1
        return tallies[index]

    def _wrong(self, where: str, letter: DeadLetter, tally: LogTally) -> Iterator[str]:
        terms = tally.log.terms_at(letter.round)
        ours = self._sources.of(terms) is not None
        name = self._sources.name_of(terms, letter.partition)
        if name is not None and letter.topic != name:
            yield f"of topic {letter.topic}, expected {name}"
        if letter.until is not None:
            own = (letter.key, letter.value, letter.value_bytes, len(letter.rows)) == (None, None, 0, 1)
            if not own or reference(letter) not in tally.references:
                yield "no batch that was left out has those records"
            else:
                tally.references.remove(reference(letter))
            return
        if letter.value is None and letter.value_bytes <= dead_letters.VALUE_BYTES and not letter.around_left_out:
            yield f"by reference, though its record has {letter.value_bytes} bytes"
        decoder = self._decoders.of(tally.log, terms) if letter.value is not None else None
        waits = decoder is not None and decoder.reads_around  # not all of what is around its record is in the letter
        if ours:
            self.waiting.put(where, terms.topic_id, letter, decoder if waits else None)
        tally.left_out += letter.rows_left_out
        index = tally.find(letter.partition, letter.offset, letter.rows[0].row_from)
        if index >= 0 and tally.round_of(index) != letter.round:
            yield f"of round {letter.round}, its first row is of round {tally.round_of(index)}"
        for rows in letter.rows:
            if not tally.place(letter, rows):
                yield f"no range of its publication holds rows {rows.row_from} to {rows.row_to} of its record"
            if decoder is not None and not waits:
                yield from decoder.otherwise(_alone(letter), rows)

    def compare(self, removed_until: int) -> None:
        """Every dead row of the logs has been told; letters of versions up to `removed_until` may be gone."""
        for tally in self._tallies:
            where, dead = f"snapshot {tally.log.version}", tally.log.ranges["dead"].astype(np.int64)
            missing = int((dead - tally.dead).clip(min=0).sum()) - tally.left_out
            more = int((tally.dead - dead).clip(min=0).sum())
            self._check.expect(not more, f"{where}: dead letters tell of {more} rows that its round log does not")
            if missing < 0:
                self._check.problems.append(f"{where}: dead letters leave out {-missing} rows more than there are")
            elif (missing or tally.references) and tally.log.version <= removed_until:
                self._check.not_checkable.append(f"{where}: dead letters removed by retention")
            elif missing or tally.references:
                batches = f" and {len(tally.references)} ranges of batches left out" if tally.references else ""
                self._check.problems.append(f"{where}: no dead letter tells of {missing} rows{batches}")


def _alone(letter: DeadLetter) -> Message:
    """A letter's record by itself, with what may name its schema."""
    return Message(letter.partition, letter.offset, -1, None, letter.value, [*letter.headers], 0, "")
