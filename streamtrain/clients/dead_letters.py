"""A job's dead letters: as they are, and their rows sent again once what was wrong is mended.

Good rows of the same record have been trained: only the dead ones are encoded again. A record all of whose rows are
dead goes as its own bytes.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from streamtrain import _native
from streamtrain.clients.topic_reader import read_messages
from streamtrain.columns.formats.parsed import Unusable
from streamtrain.columns.rows import encode_records, hidden_cell, record_rows, row_fates
from streamtrain.errors import CheckFailed, StreamtrainError, UserMistake
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import ANY_PARTITION, KafkaConsumer, Message
from streamtrain.kafka.error_codes import no_such_topic
from streamtrain.kafka.once import Once
from streamtrain.kafka.reader import read
from streamtrain.kafka.settings import Purpose
from streamtrain.record_sources.source_changes import is_file
from streamtrain.schemas import bare_format, job_format, written_format
from streamtrain.topics import dead_letters
from streamtrain.topics.dead_letters import Causes, DeadLetter
from streamtrain.topics.named_schemas import of_other_bytes

log = logging.getLogger("streamtrain.dead_letters")

_LETTERS_A_TRANSACTION = 500
_TIMEOUT_MS = 30_000


class Found(NamedTuple):
    """One message of the dead letters topic."""

    partition: int
    offset: int
    timestamp_ms: int
    letter: DeadLetter


class Stray(NamedTuple):
    """A message there that is no dead letter."""

    partition: int
    offset: int
    error: str


def not_ours(strays: int) -> str:
    return "1 entry that is not ours" if strays == 1 else f"{strays:,} entries that are not ours"


Header = tuple[str, bytes | None]


class Part(NamedTuple):
    """Dead rows of one record, as they were given, and what stood around it. `value`: the record itself, where they are
    all of it."""

    rows: list[Any]
    key: bytes | None
    headers: Sequence[Header]
    value: bytes | None = None


@dataclass(frozen=True)
class Rows:
    """The rows of a dead letter that can be sent. `still_bad`: why today's job would not take them."""

    parts: list[Part]
    refused: list[str] = field(default_factory=list)
    still_bad: list[str] = field(default_factory=list)

    @property
    def rows(self) -> list[Any]:
        return [row for part in self.parts for row in part.rows]


@dataclass
class Resent:
    """The counts of what was sent, or would be."""

    letters: int = 0
    rows: int = 0
    refused: list[str] = field(default_factory=list)
    still_bad: Counter[str] = field(default_factory=Counter)


def _warn(stray: Stray) -> None:
    log.warning("%s; it is passed over", stray.error)


def read_dead_letters(
    job: Job,
    *,
    begin: Mapping[int, int] | None = None,
    newest: int | None = None,
    on_stray: Callable[[Stray], None] = _warn,
) -> Iterator[Found]:
    """The dead letters the topic holds now, oldest first; `begin` and `newest` as `read_messages` has them.

    Whoever may write to the topic may put there what is none: it is left out, and `on_stray` gets it.
    """
    for message in read_messages(job, "dead-letters", until_end=True, begin=begin, newest=newest):
        headers = [(name, value or b"") for name, value in message.headers]
        try:
            letter = dead_letters.decode(message.key, message.value, headers)
        except CheckFailed as error:
            place = f"{job.topic('dead-letters').name}[{message.partition}]@{message.offset}"
            on_stray(Stray(message.partition, message.offset, f"{place}: {error}"))
            continue
        yield Found(message.partition, message.offset, message.timestamp_ms, letter)


def progress(job: Job) -> dict[int, int]:
    """{partition: offset} from which on dead letters have not been sent again."""
    topic = str(job.topic("dead-letters").name)
    admin = Admin(job.kafka.bootstrap, job.kafka_admin())
    state = admin.describe([topic])[topic]
    if state is None:
        raise no_such_topic(topic, job.kafka.bootstrap)
    with _group(job) as consumer:
        consumer.assign(topic, [])
        try:
            found = consumer.native.committed(list(range(state.partitions)), _TIMEOUT_MS)
        except _native.KafkaFailure as failure:
            raise consumer.explain(failure) from None
    return {partition: max(0, offset) for partition, offset in found}


def _group(job: Job) -> KafkaConsumer:
    """A consumer of the group whose offsets are the progress; it never joins."""
    return KafkaConsumer.open(Purpose.GROUP, job.kafka_consumer(), f"{job.name}.dead-letters")


def dead_rows(job: Job, letter: DeadLetter) -> Rows:
    """The rows a letter is about, from its own bytes or from the records topic where it is a reference."""
    place = f"{letter.topic}[{letter.partition}]@{letter.offset}"
    if letter.rows_left_out:
        return Rows([], [f"{place}: {letter.rows_left_out} of its dead rows are not named, the letter was full"])
    try:
        parts, refused = _left_out_batch(job, letter) if letter.until is not None else _of_record(job, letter, place)
    except _Gone as gone:
        return Rows([], [f"{place}: {gone}"])
    again = [part for part in parts if part.value is None]
    bad = [row.path for part in again for row in part.rows if isinstance(row, Unusable)]
    if bad:
        return Rows(parts, refused, bad)
    hidden = [found for part in again for found in map(hidden_cell, part.rows) if found is not None]
    if hidden:
        return Rows([], [*refused, f"{place}: {hidden[0]} cannot be encoded again"])
    try:
        for part in parts:
            around = _around(letter, part)
            if part.value is not None:
                bad += row_fates(job.schema, job_format(job), part.value, around).dead.values()
                continue
            for each in encode_records(bare_format(job), job.schema, part.rows):
                bad += row_fates(job.schema, bare_format(job), each, around).dead.values()
    except UserMistake as mistake:
        return Rows([], [*refused, f"{place}: {mistake}"])
    return Rows(parts, refused, bad)


def _around(letter: DeadLetter, part: Part) -> _native.RecordAround:
    """Returns the message metadata of its rows when they are sent again, as far as it is known."""
    now_ms = time.time_ns() // 1_000_000
    return _native.RecordAround(letter.partition, letter.offset, now_ms, part.key, part.headers)


class _Gone(Exception):
    """A reference whose record the topic no longer holds."""


def _of_record(job: Job, letter: DeadLetter, place: str) -> tuple[list[Part], list[str]]:
    value, key = letter.value, letter.key
    headers: Sequence[Header] = letter.headers
    if value is None:
        (message,) = _fetched(job, letter, letter.offset + 1)
        value, key, headers = bytes(message.value or b""), message.key, message.headers
        if len(value) != letter.value_bytes:
            raise _Gone(f"expected its record of {letter.value_bytes} bytes, found another of {len(value)}")
    of_topic = job_format(job)
    format = bare_format(job) if is_file(letter.topic) else of_topic
    found = record_rows(job.schema, format, value, headers)
    dead = {row: part.reason for part in letter.rows for row in range(part.row_from, part.row_to)}
    rows = [found.rows[row] for row in dead if row < len(found.rows)]
    refused = [
        f"{place} row {row}: the rest of the record cannot be decoded ({reason})"
        for row, reason in dead.items() if row >= len(found.rows)
    ]  # fmt: skip
    is_whole = found.broken is None and len(rows) == len(found.rows) and format.get("frame") == of_topic.get("frame")
    return [_part(key, headers, rows, value if is_whole else None)] if rows else [], refused


def _part(key: bytes | None, headers: Sequence[Header], rows: list[Any], whole: bytes | None) -> Part:
    """Rows that go around with what stood around their record; where that is not `whole`, but for what tells of its
    bytes."""
    own = dead_letters.own_headers(headers)
    return Part(rows, key, own if whole is not None else of_other_bytes(own), whole)


def _left_out_batch(job: Job, letter: DeadLetter) -> tuple[list[Part], list[str]]:
    """The rows of a rejected batch's range that were decoded: bad ones have letters of their own."""
    assert letter.until is not None
    end, end_row = letter.until
    first, expected = letter.rows[0].row_from, letter.row_count
    parts: list[Part] = []
    for message in _fetched(job, letter, end + (end_row > 0)):
        offset, value = message.offset, bytes(message.value or b"")
        found = record_rows(job.schema, job_format(job), value, message.headers)
        given = found.rows
        fates = row_fates(job.schema, job_format(job), value, message.around())
        out = fates.dead.keys() | fates.filtered
        low, high = first if offset == letter.offset else 0, end_row if offset == end else len(given)
        rows = [row for number, row in enumerate(given) if low <= number < high and number not in out]
        whole = value if found.broken is None and len(rows) == len(given) else None
        parts += [_part(message.key, message.headers, rows, whole)] if rows else []
    if (count := sum(len(part.rows) for part in parts)) != expected:
        raise _Gone(f"expected {expected} rows up to {end}, found {count}")
    return parts, []


def _fetched(job: Job, letter: DeadLetter, end: int) -> list[Message]:
    """The records from the letter's up to `end`; tombstones are none."""
    if is_file(letter.topic):
        raise _Gone("its rows are those of a file; mend them there, and produce them")
    with KafkaConsumer.open(Purpose.READ, job.kafka_consumer(), f"{job.name}.dead-letters") as consumer:
        low, high = consumer.bounds(letter.topic, letter.partition)
        if not low <= letter.offset < end <= high:
            holds = f"offsets {low} to {high - 1}" if low < high else "no record"
            raise _Gone(f"its record is gone: the partition holds {holds}")
        messages = read(consumer, letter.topic, letter.partition, letter.offset, end)
        found = [message for message in messages if message.value is not None]
    if not found or found[0].offset != letter.offset:
        raise _Gone("its record is gone")
    return found


class Resender:
    """Sends the dead rows of every letter since the last time, in transactions that hold the progress too.

    A command that dies in between leaves nothing half done. Raises CheckFailed from `look` for letters that cannot be
    read at all.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._letters = str(job.topic("dead-letters").name)
        self._begin = progress(job)
        self._format: dict[str, Any] = {}  # that is written

    def look(self) -> Resent:
        """Returns what `send` would do."""
        result = Resent()
        for _, rows in self._rows():
            self._add(result, rows)
        return result

    def send(self, topic: str) -> Iterator[Resent]:
        """Sends to `topic`; gives the totals after each transaction. Rows that still are bad are passed over."""
        result = Resent()
        partitions = self._partitions(topic)
        self._format = written_format(self._job, "records")
        name = f"{self._job.name}.dead-letters"
        with _group(self._job) as consumer, Once(self._job.kafka_producer(), name, topic) as once:
            # from here on no other sends: what is progress now stays so
            self._begin = progress(self._job)
            group = consumer.native.group_metadata()
            batch: list[tuple[Found, Rows]] = []
            for entry in self._rows():
                batch.append(entry)
                if len(batch) == _LETTERS_A_TRANSACTION:
                    yield self._transaction(once, group, partitions, batch, result)
                    batch = []
            if batch:
                yield self._transaction(once, group, partitions, batch, result)

    def _rows(self) -> Iterator[tuple[Found, Rows]]:
        for found in read_dead_letters(self._job, begin=self._begin):
            yield found, dead_rows(self._job, found.letter)

    @staticmethod
    def _add(result: Resent, rows: Rows) -> None:
        result.refused += rows.refused
        result.still_bad.update(rows.still_bad)
        if rows.rows and not rows.still_bad:
            result.letters += 1
            result.rows += len(rows.rows)

    def _partitions(self, topic: str) -> int:
        state = Admin(self._job.kafka.bootstrap, self._job.kafka_admin()).describe([topic])[topic]
        if state is None:
            raise no_such_topic(topic, self._job.kafka.bootstrap)
        return state.partitions

    def _transaction(
        self, once: Once, group: bytes, partitions: int, batch: list[tuple[Found, Rows]], result: Resent
    ) -> Resent:
        after: dict[int, int] = {}
        with once.transaction():
            for found, rows in batch:
                after[found.partition] = found.offset + 1
                if not rows.still_bad:
                    for part in rows.parts:
                        self._write(once, partitions, found.letter.partition, part)
            once.move(self._letters, list(after.items()), group)
        for _, rows in batch:
            self._add(result, rows)
        return result

    def _write(self, once: Once, partitions: int, partition: int, part: Part) -> None:
        where = partition if partition < partitions else ANY_PARTITION
        encoded = encode_records(self._format, self._job.schema, part.rows) if part.value is None else [part.value]
        for value in encoded:
            once.write(value, part.key, part.headers, where)


def reasons(letters: Iterable[Found]) -> list[tuple[str, int, int]]:
    """(cause, letters, rows), most rows first; see topics.dead_letters.cause."""
    causes = Causes()
    for found in letters:
        causes.add(found.letter)
    return [(name, causes.letters[name], rows) for name, rows in causes.rows.most_common()]


def letter_at(job: Job, place: str) -> Found:
    """The dead letter at "partition@offset" or "offset" of its topic; UserMistake where there is none."""
    partition, _, offset = place.rpartition("@")
    if not offset.isdigit() or (partition and not partition.isdigit()):
        raise UserMistake(f"dead letter: expected its offset, or partition@offset, got {place!r}")
    position = int(partition or 0), int(offset)

    def refuse(stray: Stray) -> None:
        if (stray.partition, stray.offset) == position:
            raise StreamtrainError(stray.error)

    for found in read_dead_letters(job, begin={position[0]: position[1]}, on_stray=refuse):
        if (found.partition, found.offset) == position:
            return found
    raise UserMistake(f"{job.topic('dead-letters').name}: expected a dead letter at {place}, found none")
