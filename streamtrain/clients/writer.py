"""RecordWriter: rows from any program onto a job's records or requests topic, in the job's format.

Any thread may write; delivery runs in librdkafka's own.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from confluent_kafka import KafkaException

from streamtrain.clients.arguments import job_of
from streamtrain.clients.forks import after_fork
from streamtrain.clients.outbox import Headers, OnDelivery, Outbox, Outgoing
from streamtrain.columns.kinds.key import key_bytes
from streamtrain.columns.record_encoding import Record, Records, header_bytes
from streamtrain.columns.rejected import Rejected
from streamtrain.errors import StreamtrainError, UserMistake
from streamtrain.job import Job
from streamtrain.kafka.settings import Purpose, client_settings
from streamtrain.schemas import is_framed, written_format
from streamtrain.topics.named_schemas import HEADER
from streamtrain.topics.topic import MESSAGE_BYTES, row_topics

log = logging.getLogger("streamtrain.writer")
T = TypeVar("T")
OnRejected = Callable[[Rejected], None]

PACK_ROWS = 256  # rows in a record where many are written at once
MOST_PACK_ROWS = 65_536
DELIVERY_TIMEOUT_S = 120.0
_LEAVING_S = 30.0  # for delivery where an exception or the program's end leaves the writer
_POLL_MASK = 63  # single rows are looked at for failures this often


class _Along(NamedTuple):
    """The message metadata and delivery callback of a call's rows. Rows that are gathered into one record have the
    same."""

    key: bytes | None = None
    own_keys: bool = False  # the key column's instead
    headers: Headers | None = None
    timestamp_ms: int | None = None
    on_delivery: OnDelivery | None = None

    @property
    def spare_bytes(self) -> int:
        """Returns the bytes of its messages that are not a row's own."""
        return header_bytes(self.headers or ())


class RecordWriter:
    """Writes rows to Kafka in the job's format, idempotently: a retry writes no row twice. Any thread may write.

    `job` is a Job or the path of its file. `pack`: rows in a record. Without it a row given alone is a record of its
    own and rows given together are packed by 256; with it, single rows are gathered too, until there are so many, or
    `flush`. Where the job has a key column, or one from the key or a header, it is the message's, and rows in one
    record have the same. A record holds the job's columns, in json and msgpack also other fields with plain values: of
    64 names, beyond that perhaps.

    `on_delivery(error, message)`, with confluent_kafka's KafkaError or None and its Message, is called for each record
    from a thread of the writer, and must not write itself.

    A row that `write` has returned for is accepted: it is delivered, or an error says that it was not, at the latest
    from `flush` or `close`. Leaving the `with` closes: it waits for delivery and raises what failed. When an exception
    leaves the block, what was accepted is sent all the same, for up to 30 s, and what was not delivered then is said in
    a note on that exception. A writer left open at the program's end does the same and says so in the log. If the
    program has no handler of SIGTERM, a writer of its main thread makes that signal end it as sys.exit(143) does.
    `async with`, awrite, aflush and aclose do all of it beside an event loop.
    """

    def __init__(
        self,
        job: Job | str | Path,
        to: str = "records",
        *,
        pack: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> None:
        job = job_of("RecordWriter", job)
        if to not in row_topics():
            raise UserMistake(f"RecordWriter: expected {' or '.join(row_topics())}, got {to!r}")
        if pack is not None and (not isinstance(pack, int) or not 1 <= pack <= MOST_PACK_ROWS):
            raise UserMistake(f"RecordWriter: expected a pack of at least 1 row and at most 65,536, got {pack!r}")
        self.topic = str(job.topic(to).name)
        self._rows = self._record_count = 0
        self._singles = 0  # rows that were a record of their own
        self._pack = pack
        settings: dict[str, Any] = {**client_settings(Purpose.WRITE, job.kafka_producer())}
        most_bytes = min(MESSAGE_BYTES, int(settings.get("message.max.bytes", MESSAGE_BYTES)))
        format = written_format(job, to)
        self._is_framed = is_framed(format)
        self._records = Records(job.schema, format, self.topic, pack or PACK_ROWS, most_bytes)
        self._default = _Along(own_keys=self._records.key_column is not None)
        self._gathered = _Gathered([], self._default)
        self._outbox = Outbox(settings, self.topic, job.kafka.bootstrap, on_delivery)
        self._quick = pack is None and not self._records.has_own  # a dict alone is a record
        self._encode, self._most_bytes = self._records.encode, most_bytes
        self._lock = threading.Lock()
        self._forked = False
        self._process = os.getpid()
        after_fork(self, RecordWriter._leave_to_parent)
        # one thread of the writer's own: calls keep their order and the loop's own threads stay free
        self._beside = ThreadPoolExecutor(1, thread_name_prefix=f"streamtrain-awrite-{self.topic}")
        self._last_words = weakref.finalize(self, _left_open, self._records, self._gathered, self._outbox)

    def write(
        self,
        rows: Any,
        *,
        key: str | bytes | None = None,
        headers: Mapping[str, str | bytes | None] | Headers | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
        on_rejected: OnRejected | None = None,
    ) -> int:
        """Accepts a dict, many dicts, a dict of arrays or a frame; gives the number of rows.

        All of the call's records get `key` (else that of the job's key column), `headers`, `timestamp_ms` (since 1970;
        else now) and are reported to `on_delivery`. datetime, Decimal, NumPy's scalars and the like are taken where the
        column can; fields the job does not name are no reason for an error. Raises UserMistake naming the row and
        column that cannot be written, with none of the call's rows accepted (of more than 65,536: none from the block
        of that row on, as the error says); with `on_rejected` such a row is left out alone, and that gets its place and
        reason. Raises what an earlier delivery failed of; KafkaUnreachable when librdkafka's queue is full for two
        minutes: rows accepted are kept then. Waits while that queue is full.
        """
        outbox = self._outbox
        with self._lock:
            if outbox.refusing:
                self._refuse()
            if key is None and headers is None and timestamp_ms is None and on_delivery is None:
                if self._quick and on_rejected is None and type(rows) is dict and not outbox.waiting:
                    try:  # one dict that is a record of its own: the hot path
                        value = self._encode(rows)
                        if value is not None and len(value) <= self._most_bytes:
                            outbox.produce(self.topic, value)
                            self._singles = singles = self._singles + 1
                            if not singles & _POLL_MASK:
                                outbox.serve()
                            return 1
                    except (ValueError, BufferError, KafkaException):
                        pass  # the other way says what it is
                return self._write(rows, self._default, on_rejected)
            return self._write(rows, self._along(key, headers, timestamp_ms, on_delivery), on_rejected)

    def check(self, rows: Any, on_rejected: OnRejected | None = None) -> None:
        """Raises UserMistake for rows that `write` would refuse, or gives each to `on_rejected`; nothing is sent."""
        with self._lock:
            for _ in self._blocks(rows, self._default, on_rejected):
                pass

    @property
    def rows_written(self) -> int:
        """Rows accepted; those gathered for a record are not yet among them."""
        return self._rows + self._singles

    @property
    def records_written(self) -> int:
        return self._record_count + self._singles

    def flush(self, timeout_s: float = DELIVERY_TIMEOUT_S) -> None:
        """Waits until all that was accepted is delivered; raises what failed, KafkaUnreachable after `timeout_s`."""
        with self._lock:
            if self._outbox.shut:
                self._refuse()
            self._send_gathered()
            self._outbox.send(timeout_s)
        self._outbox.flush(timeout_s)

    def close(self, timeout_s: float = DELIVERY_TIMEOUT_S) -> None:
        """Flushes as `flush`; the writer accepts nothing afterwards. Safe to call again."""
        if self._forked:
            return  # the producer is the parent's
        outbox = self._outbox
        try:
            with self._lock:
                if self._outbox.shut:
                    return
                outbox.shut = outbox.refusing = True
                self._last_words.detach()
                self._send_gathered()
                self._outbox.send(timeout_s)
            self._outbox.flush(timeout_s)
        finally:
            self._outbox.close()
            self._beside.shutdown(wait=False)

    def _leave_to_parent(self) -> None:
        """In a forked child: neither the lock nor the producer's threads are of use here."""
        self._forked = True
        self._lock = threading.Lock()
        self._last_words.detach()
        self._outbox.leave_to_parent()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        try:
            self.close(_LEAVING_S)
        except StreamtrainError as failure:  # the first error is seen, this one beside it
            error.add_note(f"RecordWriter: {failure}")
            log.error("%s", failure)

    async def awrite(self, rows: Any, **along: Any) -> int:
        """Writes as write(), with its keywords, without blocking the event loop. Calls are accepted in order."""
        return await self._beside_loop(functools.partial(self.write, rows, **along))

    async def aflush(self, timeout_s: float = DELIVERY_TIMEOUT_S) -> None:
        """Flushes as flush(), while the event loop goes on."""
        await self._beside_loop(functools.partial(self.flush, timeout_s))

    async def aclose(self, timeout_s: float = DELIVERY_TIMEOUT_S) -> None:
        """Closes as close(), while the event loop goes on."""
        await self._beside_loop(functools.partial(self.close, timeout_s))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._beside_loop(functools.partial(self.__exit__, kind, error, trace))

    async def _beside_loop(self, call: Callable[[], T]) -> T:
        """The call in the writer's own thread; no lock is waited for in the loop's."""
        loop = asyncio.get_running_loop()
        try:
            outcome = loop.run_in_executor(self._beside, call)
        except RuntimeError:  # closed: the call refuses, or does nothing
            outcome = loop.run_in_executor(None, call)
        return await outcome

    def _along(
        self,
        key: str | bytes | None,
        headers: Mapping[str, str | bytes | None] | Headers | None,
        timestamp_ms: int | None,
        on_delivery: OnDelivery | None,
    ) -> _Along:
        if key is not None and not isinstance(key, bytes) and not (isinstance(key, str) and _encodes(key)):
            raise UserMistake(f"write: expected a key of text or bytes, got {key!r}")
        if timestamp_ms is not None and (not isinstance(timestamp_ms, int) or not 1 <= timestamp_ms < 2**63):
            raise UserMistake(f"write: expected timestamp_ms as whole milliseconds since 1970, got {timestamp_ms!r}")
        if on_delivery is not None:
            self._outbox.report_all(DELIVERY_TIMEOUT_S)
        found = _headers(headers)
        if self._is_framed and any(name == HEADER for name, _ in found or ()):
            raise UserMistake(f"write: expected headers without {HEADER}: the frame that is written names the schema")
        own_keys = key is None and self._default.own_keys
        return _Along(key_bytes(key), own_keys, found, timestamp_ms, on_delivery)

    def _write(self, rows: Any, along: _Along, on_rejected: OnRejected | None) -> int:
        if self._pack is not None and isinstance(rows, Mapping):
            row = dict(rows)  # the caller's may change before it is sent
            try:
                own = self._records.own_of(row, along.key, along.own_keys)
                is_alone = self._records.of_dict(row, along.spare_bytes + own.bytes) is not None
            except UserMistake:
                if on_rejected is None:
                    raise
                is_alone = False  # what is wrong with it is given to on_rejected
            if is_alone:
                self._gather(row, along)
                return 1
        self._send_gathered()
        before = self.rows_written
        try:
            for block in self._blocks(rows, along, on_rejected):
                self._accept(block, along)
                self._outbox.send(DELIVERY_TIMEOUT_S)
        except UserMistake as mistake:
            if self.rows_written == before:
                raise
            written = self.rows_written - before
            raise UserMistake(f"{mistake}; the {written:,} rows before its block are written") from None
        return self.rows_written - before

    def _blocks(self, rows: Any, along: _Along, on_rejected: OnRejected | None) -> Iterator[list[Record]]:
        reject = on_rejected is not None
        for block in self._records.blocks(rows, along.key, along.own_keys, along.spare_bytes, reject=reject):
            for each in block:
                if isinstance(each, Rejected) and on_rejected is not None:
                    on_rejected(each)
            yield [each for each in block if isinstance(each, Record)]

    def _gather(self, row: dict[str, Any], along: _Along) -> None:
        if along != self._gathered.along:
            self._send_gathered()
            self._gathered.along = along
        self._gathered.rows.append(row)
        if len(self._gathered.rows) >= (self._pack or 1):
            self._send_gathered()

    def _send_gathered(self) -> None:
        if self._gathered.rows:
            self._accept(self._gathered.take(self._records), self._gathered.along)
        self._outbox.send(DELIVERY_TIMEOUT_S)

    def _accept(self, records: list[Record], along: _Along) -> None:
        for record in records:
            headers = [*(along.headers or ()), *record.own.headers] or None
            self._outbox.put(Outgoing(record, headers, along.timestamp_ms, along.on_delivery))
            self._rows += record.rows
            self._record_count += 1

    def _refuse(self) -> None:
        if self._forked:
            raise UserMistake(
                f"RecordWriter to {self.topic}: made in process {self._process}, used after a fork in process "
                f"{os.getpid()}, where nothing delivers; make it in the process that uses it"
            )
        if self._outbox.shut:
            raise UserMistake(f"RecordWriter to {self.topic}: expected an open writer, got a closed one")
        self._outbox.raise_failure()  # once said, the writer goes on


class _Gathered:
    """Single rows that will be one record, each checked alone."""

    def __init__(self, rows: list[dict[str, Any]], along: _Along) -> None:
        self.rows = rows
        self.along = along

    def take(self, records: Records) -> list[Record]:
        """Returns the records of the rows; `rows` is empty afterwards."""
        rows, along = self.rows, self.along
        try:
            result = [record for block in records.blocks(rows, along.key, along.own_keys, along.spare_bytes)
                    for record in block]  # fmt: skip
        except UserMistake:  # each is good alone, but no format holds them together
            result = [record for row in rows
                    for block in records.blocks([row], along.key, along.own_keys, along.spare_bytes)
                    for record in block]  # fmt: skip
        self.rows = []
        return result


def _encodes(text: str) -> bool:
    """Returns whether the text is valid UTF-8; half a surrogate pair is not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_header(name: object, value: object) -> bool:
    named = isinstance(name, str) and "\0" not in name and _encodes(name)
    return named and (value is None or isinstance(value, bytes) or (isinstance(value, str) and _encodes(value)))


def _headers(given: Mapping[str, str | bytes | None] | Headers | None) -> Headers | None:
    if given is None:
        return None
    try:
        pairs = [(name, value) for name, value in (given.items() if isinstance(given, Mapping) else given)]
    except (TypeError, ValueError):
        pairs = [(None, None)]  # type: ignore[list-item]
    if not all(_is_header(name, value) for name, value in pairs):
        raise UserMistake(f"write: expected headers of names with text, bytes or None, got {given!r}")
    return pairs


def _left_open(records: Records, gathered: _Gathered, outbox: Outbox) -> None:
    """A writer is thrown away, or the program ends, without close()."""
    failure: StreamtrainError | None = None
    try:
        for record in gathered.take(records) if gathered.rows else ():
            along = gathered.along
            outbox.put(Outgoing(record, along.headers, along.timestamp_ms, along.on_delivery))
        outbox.send(_LEAVING_S)
        outbox.flush(_LEAVING_S)
    except StreamtrainError as error:
        failure = error
    finally:
        outbox.close()
    if failure is not None:
        log.error("RecordWriter to %s was not closed: %s", outbox.topic, failure)
