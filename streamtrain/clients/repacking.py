"""A topic's records read, packed, keyed and written to another topic, each row once: `vectorize --from-topic`.

Its positions go into the transaction that holds the rows, so that whatever ends it, the next start goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from streamtrain import _native
from streamtrain._native import KafkaSource, RepackUntil
from streamtrain.columns import formats
from streamtrain.columns.around import HEADERS, KEY
from streamtrain.errors import CheckFailed, KafkaUnreachable, UserMistake
from streamtrain.failpoints import hit
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.errors import no_such_topic
from streamtrain.kafka.once import Once
from streamtrain.kafka.settings import Purpose
from streamtrain.schemas import job_format
from streamtrain.topics.topic import MESSAGE_BYTES

FORMAT = "packed"
MESSAGES_A_TRANSACTION, BYTES_A_TRANSACTION = 5_000, 32 << 20  # whichever comes first
_TIMEOUT_MS = 30_000
_WAIT_MS, _SILENCE_S = 100, 8.0  # for messages
_SLOT_ROWS, _SLOT_BYTES = 1024, 32 << 20  # decoded at once; the slot is not what is kept
_NO_KEY_COLUMN = -1


@dataclass
class Repacked:
    """What was done so far. `left_out` are rows that cannot be used, `first` the first of them."""

    messages: int = 0
    rows: int = 0
    records: int = 0
    filtered: int = 0
    left_out: int = 0
    first: list[str] = field(default_factory=list)


class Repacker:
    """One job's records from one topic to another. UserMistake where packed records cannot hold its columns."""

    def __init__(self, job: Job, source: str, to: str, pack: int) -> None:
        self._job, self._source, self._to, self._pack = job, source, to, pack
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
        for _, column in schema.every:
            column.entry.require()
        self._group_name = f"{job.name}.vectorize.{source}.{to}"
        self._identity = ""  # of both topics: positions of others count for nothing

    def run(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Repacked]:
        """From where the last start has got to up to the topic's end now; what is done, after each transaction.

        KafkaUnreachable, CheckFailed and others of ours where it cannot go on: what was not told is not done.
        """
        partitions = self._partitions()
        native = self._repacker()
        with self._group() as group, Once(self._job.kafka_producer(), self._group_name, self._to) as once:
            metadata = group.native.group_metadata()  # from here on no other of this name writes
            spans = self._spans(group)
            with KafkaConsumer.open(Purpose.READ, self._job.kafka_consumer(), f"{self._group_name}.read") as consumer:
                for _ in self._batches(native, consumer, spans, stop):
                    yield self._transaction(native, once, metadata, partitions)

    def _repacker(self) -> _native.Repacker:
        schema = self._job.schema
        columns, transforms = schema.native_plan()
        specs = schema.block_specs()
        row_bytes = _native.SlotLayout.make(64, 1, specs).slot_bytes // 64
        layout = _native.SlotLayout.make(max(1, min(_SLOT_ROWS, _SLOT_BYTES // row_bytes)), 1, specs)
        keys = [number for number, (_, column) in enumerate(schema.columns) if column.role == "key"]
        return _native.Repacker(
            job_format(self._job), columns, transforms, layout, schema.constants(), schema.native_columns(), FORMAT,
            self._source, self._to, keys[0] if keys else _NO_KEY_COLUMN, self._pack, MESSAGE_BYTES,
        )  # fmt: skip

    def _batches(
        self,
        native: _native.Repacker,
        consumer: KafkaConsumer,
        spans: dict[int, tuple[int, int]],
        stop: Callable[[], bool],
    ) -> Iterator[None]:
        """Each time that a transaction's worth is decoded, and what is left at the end, or when it is to stop."""
        ends = {partition: end for partition, (begin, end) in spans.items() if begin < end}
        source = KafkaSource(consumer.native, self._source, list(ends.items()), True)
        try:
            native.start(source, [(partition, spans[partition][0]) for partition in ends])
            heard_s = time.monotonic()
            while ends and not source.ended and not stop():
                taken = native.take(source, _WAIT_MS)
                now_s = time.monotonic()
                heard_s = now_s if taken else heard_s
                if now_s - heard_s > _SILENCE_S:
                    raise KafkaUnreachable(f"{self._source}: expected its messages up to (partition, offset) "
                                           f"{sorted(ends.items())}, no answer from Kafka in {_SILENCE_S:.0f} s")
                yield from self._decoded(native, source, stop)
                heard_s = time.monotonic() if taken else heard_s
        except _native.KafkaFailure as failure:
            raise consumer.explain(failure) from None
        if native.waiting:
            yield

    def _decoded(self, native: _native.Repacker, source: KafkaSource, stop: Callable[[], bool]) -> Iterator[None]:
        """What is taken; a schema that a record names is waited for."""
        most = MESSAGES_A_TRANSACTION, BYTES_A_TRANSACTION
        while (until := native.decode(source, *most)) is not RepackUntil.TAKEN and not stop():
            if native.waiting:
                yield
            if until is RepackUntil.WAITS:
                time.sleep(_WAIT_MS / 1000)

    def _partitions(self) -> int:
        """Of the topic that is written to; both must be there."""
        states = Admin(self._job.kafka.bootstrap, self._job.kafka_admin()).describe([self._source, self._to])
        source, to = states[self._source], states[self._to]
        if source is None or to is None:
            raise no_such_topic(self._source if source is None else self._to, self._job.kafka.bootstrap)
        self._identity = f"{source.topic_id}.{to.topic_id}"
        return to.partitions

    def _spans(self, group: KafkaConsumer) -> dict[int, tuple[int, int]]:
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

    def _transaction(self, native: _native.Repacker, once: Once, group: bytes, partitions: int) -> Repacked:
        with once.transaction():
            once.queued(native.write(once.native, partitions))
            hit("vectorize.written")
            once.move(self._source, native.positions, group, self._identity)
        hit("vectorize.committed")
        native.done()
        return Repacked(**native.told())
