"""A topic's records read, packed, keyed and written to another topic, each row once: `vectorize --from-topic`.

Its positions go into the transaction that holds the rows, so that whatever ends it, the next start goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from streamtrain import _native
from streamtrain._native import KafkaEnding, KafkaOutcome
from streamtrain.columns import formats
from streamtrain.columns.around import HEADERS, KEY
from streamtrain.columns.records import Record, Records
from streamtrain.columns.rows import record_rows, row_fates
from streamtrain.errors import CheckFailed, UserMistake
from streamtrain.failpoints import hit
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import ANY_PARTITION, KafkaConsumer, Message, TransactionalProducer
from streamtrain.kafka.errors import no_such_topic
from streamtrain.kafka.reader import read_all
from streamtrain.kafka.settings import Purpose
from streamtrain.schemas import job_format
from streamtrain.topics.topic import MESSAGE_BYTES

FORMAT = "packed"
MESSAGES_A_TRANSACTION, BYTES_A_TRANSACTION = 5_000, 32 << 20  # whichever comes first
_TIMEOUT_MS = 30_000
_TOLD = 5  # of the rows that cannot be used
_Around = tuple[bytes | None, tuple[tuple[str, bytes | None], ...], int]  # key, headers, partition
_Headers = tuple[tuple[str, bytes | None], ...]


@dataclass
class Repacked:
    """What was done so far. `left_out` are rows that cannot be used, `first` the first of them."""

    messages: int = 0
    rows: int = 0
    records: int = 0
    filtered: int = 0
    left_out: int = 0
    first: list[str] = field(default_factory=list)

    def leave_out(self, where: str) -> None:
        self.left_out += 1
        if len(self.first) < _TOLD:
            self.first.append(where)


class Repacker:
    """One job's records from one topic to another. UserMistake where packed records cannot hold its columns."""

    def __init__(self, job: Job, source: str, to: str, pack: int) -> None:
        self._job, self._source, self._to = job, source, to
        schema = job.schema
        wrong = next(formats.mistakes(FORMAT, schema), None)
        if wrong is not None:
            raise UserMistake(f"{to}: columns.{wrong[0]}: {wrong[1]}")
        around = {column.around for _, column in schema.columns if column.around is not None}
        moved = sorted(each for each in around if each != KEY and not each.startswith(HEADERS))
        if moved:
            raise UserMistake(f'{to}: expected columns of the record, its key and headers, got one from "{moved[0]}"')
        if source == to:
            raise UserMistake(f"{to}: expected another topic to write to than {source}")
        self._own_keys = any(column.role == "key" for _, column in schema.columns)
        self._records = Records(schema, FORMAT, to, pack, MESSAGE_BYTES)
        self._names = [name for name, column in schema.columns if column.around is None]
        self._group_name = f"{job.name}.vectorize.{source}.{to}"
        self._identity = ""  # of both topics: positions of others count for nothing

    def run(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Repacked]:
        """From where the last start has got to up to the topic's end now; what is done, after each transaction.

        KafkaUnreachable, CheckFailed and others of ours where it cannot go on: what was not told is not done.
        """
        partitions = self._partitions()
        told = Repacked()
        with self._group() as group, self._producer() as producer:
            metadata = group.native.group_metadata()  # from here on no other of this name writes
            spans = self._spans(group)
            with KafkaConsumer.open(Purpose.READ, self._job.kafka_consumer(), f"{self._group_name}.read") as consumer:
                batch: list[Message] = []
                size = 0
                for message in read_all(consumer, self._source, spans, stop):
                    batch.append(message)
                    size += len(message.value or b"")
                    if len(batch) == MESSAGES_A_TRANSACTION or size >= BYTES_A_TRANSACTION:
                        yield self._transaction(producer, metadata, partitions, batch, told)
                        batch, size = [], 0
                if batch:
                    yield self._transaction(producer, metadata, partitions, batch, told)

    def _partitions(self) -> int:
        """Of the topic that is written to; both must be there."""
        states = Admin(self._job.kafka.bootstrap, self._job.kafka_admin()).describe([self._source, self._to])
        source, to = states[self._source], states[self._to]
        if source is None or to is None:
            raise no_such_topic(self._source if source is None else self._to, self._job.kafka.bootstrap)
        self._identity = f"{source.topic_id}.{to.topic_id}"
        return to.partitions

    def _spans(self, group: KafkaConsumer) -> dict[int, tuple[int, int | None]]:
        found = Admin(self._job.kafka.bootstrap, self._job.kafka_admin()).spans(self._source)
        if found is None:
            raise no_such_topic(self._source, self._job.kafka.bootstrap)
        group.assign(self._source, [])
        try:
            done = dict(group.native.committed(list(range(len(found))), _TIMEOUT_MS))
            group.native.set_identity(self._identity)
            own = dict(group.native.committed(list(range(len(found))), _TIMEOUT_MS))
        except _native.KafkaFailure as failure:
            raise group.explain(failure) from None
        for partition, (low, end) in enumerate(found):
            if done[partition] > end or done[partition] != own[partition]:
                raise CheckFailed(f"{self._source} partition {partition}: expected records from offset "
                                  f"{done[partition]} on, those before are in {self._to}; but one of the two topics "
                                  "was made anew since. Give another topic to write to, or delete the group "
                                  + self._group_name)  # fmt: skip
            if 0 <= done[partition] < low:
                raise CheckFailed(f"{self._source} partition {partition}: expected records from offset "
                                  f"{done[partition]} on, it begins at {low}: those between were removed")  # fmt: skip
        return {partition: (max(low, done[partition]), end) for partition, (low, end) in enumerate(found)}

    def _group(self) -> KafkaConsumer:
        """Of the group whose offsets are the positions; it never joins."""
        return KafkaConsumer.open(Purpose.GROUP, self._job.kafka_consumer(), self._group_name)

    def _producer(self) -> TransactionalProducer:
        producer = TransactionalProducer.open(Purpose.RESEND, self._job.kafka_producer(), self._group_name)
        self._check(producer, producer.native.prepare())
        return producer

    def _check(self, producer: TransactionalProducer, outcome: KafkaOutcome) -> None:
        if outcome.code:
            raise producer.explain(outcome.code, outcome.text, f"topic {self._to}")

    def _transaction(
        self, producer: TransactionalProducer, metadata: bytes, partitions: int, batch: list[Message], told: Repacked
    ) -> Repacked:
        native = producer.native
        after = {message.partition: message.offset + 1 for message in batch}
        self._check(producer, native.begin())
        try:
            for (key, headers, partition), rows in self._grouped(batch, told):
                for record in self._encoded(key, rows, told):
                    where = partition % partitions if record.own.key is None else ANY_PARTITION
                    named = [*headers]
                    if code := producer.produce(self._to, record.value, record.own.key, partition=where, headers=named):
                        self._check(producer, _native.kafka_not_queued(code, self._to))
                    told.records += 1
                    told.rows += record.rows
            hit("vectorize.written")
        except BaseException:
            native.abort("not all of it was written")
            raise
        ended = native.commit(self._source, list(after.items()), metadata, self._identity)
        if ended.ending is not KafkaEnding.COMMITTED:
            self._check(producer, ended.why)
        hit("vectorize.committed")
        told.messages += len(batch)
        return told

    def _grouped(self, batch: list[Message], told: Repacked) -> list[tuple[_Around, list[dict[str, Any]]]]:
        """The rows that can be used, with those that may share a record: those of one key stay in their order."""
        schema, format = self._job.schema, job_format(self._job)
        groups: list[tuple[_Around, list[dict[str, Any]]]] = []
        newest: dict[object, int] = {}  # of a key's groups, or of those without one and the same headers
        for message in batch:
            value = bytes(message.value or b"")
            if not value:
                continue  # a tombstone
            given = record_rows(schema, format, value).rows
            fates = row_fates(schema, format, value, message.around())
            told.filtered += len(fates.filtered)
            for row, path in fates.dead.items():
                told.leave_out(f"{self._source}[{message.partition}]@{message.offset} row {row} at {path}")
            rows = [row for number, row in enumerate(given) if number not in fates.dead.keys() | fates.filtered]
            around = (None if self._own_keys else message.key, tuple(message.headers), message.partition)
            of = around if around[0] is None else around[0]
            at = newest.get(of)
            if at is None or groups[at][0] != around:
                newest[of] = len(groups)
                groups.append((around, []))
            groups[newest[of]][1].extend(map(self._named, rows))
        return groups

    def _named(self, row: Any) -> dict[str, Any]:
        return row if isinstance(row, dict) else dict(zip(self._names, row, strict=False))

    def _encoded(self, key: bytes | None, rows: list[dict[str, Any]], told: Repacked) -> list[Record]:
        """One by one where one of them cannot stand in a packed record."""
        try:
            return [record for block in self._records.blocks(rows, key, self._own_keys) for record in block]
        except UserMistake as mistake:
            if len(rows) == 1:
                told.leave_out(f"{self._source}: {mistake}")
                return []
        return [record for row in rows for record in self._encoded(key, [row], told)]
