"""RecordWriter: rows from any program onto a job's records or requests topic, in the job's format.

One thread at a time may write; delivery runs in librdkafka's own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Literal, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streamtrain.clients.rows import Columns, columns_of
from streamtrain.errors import KafkaUnreachable, UserMistake
from streamtrain.job import Job
from streamtrain.kafka.errors import explain
from streamtrain.log import librdkafka_logger
from streamtrain.topics._topic import MESSAGE_BYTES
from streamtrain.vectorize.formats import record_format

PACK_ROWS = 256  # rows in a record where many are written at once
DELIVERY_TIMEOUT_S = 120.0
_DEFAULTS = {"linger.ms": "5"}


class RecordWriter:
    """Writes rows to Kafka in the job's format, idempotently: a retry writes no row twice.

    `pack`: rows in a record. Without it a row given alone is a record of its own and rows given together are packed
    by 256; with it, single rows are gathered too, until there are so many, or `flush`. Where the job has a key column
    it is the message's key, and rows in one record have one key. Leaving the `with` waits for delivery.
    """

    def __init__(self, job: Job, to: Literal["records", "requests"] = "records", *, pack: int | None = None) -> None:
        if to not in ("records", "requests"):
            raise UserMistake(f"RecordWriter: expected records or requests, got {to!r}")
        if pack is not None and pack < 1:
            raise UserMistake(f"RecordWriter: expected a pack of at least 1 row, got {pack}")
        self.topic = str(job.topic(to).name)
        self.rows_written = 0
        self.records_written = 0
        self._schema = job.schema
        self._format = record_format(job.records.format)
        self._pack = pack
        self._gathered: list[dict[str, Any]] = []
        self._failure: KafkaError | None = None
        names = [name for name, column in job.file.columns.items() if column.role == "key"]
        self._key = names[0] if names else None
        self._bootstrap = job.kafka.bootstrap
        settings: dict[str, str | int | float | bool] = {
            **_DEFAULTS,
            **job.kafka_producer(),
            "enable.idempotence": True,
        }
        self._value_bytes = min(MESSAGE_BYTES, int(settings.get("message.max.bytes", MESSAGE_BYTES)))
        try:
            self._producer = Producer(settings, logger=librdkafka_logger())
        except KafkaException as error:
            raise UserMistake(f"[kafka] {error.args[0].str()}") from None

    def write(self, rows: Any) -> int:
        """Writes one dict, a list of dicts, a dict of arrays or a frame; gives the number of rows.

        Raises UserMistake for rows the format cannot hold, and what an earlier delivery failed of.
        """
        self._raise_failure()
        if self._pack is not None and isinstance(rows, dict):
            columns, count, single = columns_of(rows)
            if single:
                self._gathered.append({name: cells[0] for name, cells in columns.items()})
                if len(self._gathered) >= self._pack:
                    self._send_gathered()
                return 1
        else:
            columns, count, _ = columns_of(rows)
        self._send_gathered()
        self._send(columns, count)
        return count

    def flush(self, timeout_s: float = DELIVERY_TIMEOUT_S) -> None:
        """Waits until all that was written is delivered; raises what failed."""
        self._send_gathered()
        left = self._producer.flush(timeout_s)
        self._raise_failure()
        if left:
            raise KafkaUnreachable(
                f"{left} records to {self.topic} not taken by Kafka at {self._bootstrap} in {timeout_s:g} s"
            )

    def close(self) -> None:
        """As `flush`; the writer cannot be used afterwards."""
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:  # deliver what was written, but let the first error be seen
            self._producer.flush(5)

    def _send_gathered(self) -> None:
        if self._gathered:
            columns, count, _ = columns_of(self._gathered)
            self._gathered = []
            self._send(columns, count)

    def _send(self, columns: Columns, count: int) -> None:
        for key, chosen in self._by_key(columns, count):
            for start in range(0, len(chosen), self._pack or PACK_ROWS):
                self._send_record(key, columns, chosen[start : start + (self._pack or PACK_ROWS)])

    def _by_key(self, columns: Columns, count: int) -> Iterator[tuple[bytes | None, list[int]]]:
        """Row numbers that may share a record, by key in order of first sight."""
        if self._key is None or self._key not in columns:
            yield None, list(range(count))
            return
        groups: dict[Any, list[int]] = {}
        for number, cell in enumerate(columns[self._key]):
            groups.setdefault(cell, []).append(number)
        for cell, chosen in groups.items():
            yield (None if cell is None else cell if isinstance(cell, bytes) else str(cell).encode()), chosen

    def _send_record(self, key: bytes | None, columns: Columns, chosen: list[int]) -> None:
        """One record, or two halves of it where it would be larger than a message may be."""
        if not chosen:
            return
        alone = len(chosen) == 1 and all(len(cells) == 1 for cells in columns.values())
        picked = columns if alone else {name: [cells[i] for i in chosen] for name, cells in columns.items()}
        value = self._format.encode(self._schema, picked)
        if len(value) + len(key or b"") > self._value_bytes:
            if len(chosen) == 1:
                raise UserMistake(
                    f"{self.topic}: expected a row of at most {self._value_bytes:,} bytes, got {len(value):,}; "
                    "raise message.max.bytes in [kafka.producer] and the topic's max.message.bytes, or make it smaller"
                )
            self._send_record(key, columns, chosen[: len(chosen) // 2])
            self._send_record(key, columns, chosen[len(chosen) // 2 :])
            return
        self._produce(key, value)
        self.rows_written += len(chosen)
        self.records_written += 1

    def _produce(self, key: bytes | None, value: bytes) -> None:
        deadline = time.monotonic() + DELIVERY_TIMEOUT_S
        while True:
            try:
                self._producer.produce(self.topic, value, key, on_delivery=self._delivered)
                self._producer.poll(0)
                return
            except BufferError:  # librdkafka's queue is full: let deliveries make room
                self._producer.poll(0.1)
                self._raise_failure()
                if time.monotonic() > deadline:
                    raise KafkaUnreachable(f"{self.topic}: Kafka at {self._bootstrap} takes no records") from None

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._failure is None:
            self._failure = error

    def _raise_failure(self) -> None:
        if self._failure is None:
            return
        error, self._failure = self._failure, None
        raise explain(error, f"{self.topic}: a record was not delivered", self._bootstrap)
