"""The trainer's transactions: who holds the job, and each publication in exactly one committed transaction.

The coordinator's state machine: after an unknown outcome the newest run entry and the newest manifest are the only
truth. librdkafka has no KIP-890: a timed-out commit is never followed by another transaction on the same producer.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as Delivered

from streamtrain._native import KafkaResponse
from streamtrain.errors import (
    KafkaBroken,
    KafkaUnreachable,
    Replaced,
    StreamtrainError,
    TooManyOpenFiles,
    UserMistake,
)
from streamtrain.failpoints import hit
from streamtrain.kafka.chunks import Located
from streamtrain.kafka.errors import Heard, explain, response_to
from streamtrain.kafka.renewing import in_background, leave_behind
from streamtrain.kafka.settings import Purpose, client_settings
from streamtrain.log import get_logger
from streamtrain.topics.control import RunEntry
from streamtrain.topics.manifest import Run
from streamtrain.topics.topic import Message

log = get_logger(__name__)
_librdkafka = logging.getLogger("streamtrain.kafka")
T = TypeVar("T")

_COMMIT_TIMEOUT_S = 9.0  # below transaction.timeout.ms, so that an unknown outcome is met here first
# The broker has aborted a transaction by then, which librdkafka, should it not come back, need not have noticed.
_ABANDON_AFTER_S = 13.0
_FIRST_ANSWER_S = 10.0  # how long a start waits for a broker before it says that there is none
_SAY_AGAIN_S = 10.0  # what is waited for
_MARKERS_S = 0.1  # from the answer to an abort until readers see it
_JITTER_S = (0.05, 0.5)  # before a fenced producer is made again: two trainers must not keep fencing each other in step


@dataclass(frozen=True)
class Batch:
    """What one transaction writes: (topic, message), in this order; `digest` is the snapshot's.

    Nothing is committed before `check` has returned, which has the time that the messages take; what it raises ends
    the transaction.
    """

    messages: Sequence[tuple[str, Message]]
    name: str = ""
    digest: bytes = b""
    check: Callable[[], object] = lambda: None


class Holding(Protocol):
    """What the job's own topics say of who holds it; raises KafkaUnreachable where they cannot be read to the end."""

    def holder(self) -> RunEntry | None:
        """The entry of the newest run."""

    def newest(self) -> Located | None:
        """The newest manifest; None where there is none, or none that can be read."""

    def gone(self, topics: Iterable[str]) -> str | None:
        """One of these topics that Kafka holds no more."""

    def unfinished(self) -> Sequence[tuple[str, int]]:
        """Topics and partitions in which a transaction is neither committed nor aborted; the trainer's alone do."""

    def entry(self, run: Run) -> tuple[str, Message]:
        """Topic and message by which `run` takes the job."""


class _Unknown(Exception):
    """The transaction may or may not have been committed, and this producer must not be used again."""


class _Aborted(Exception):
    """The transaction was aborted; the same producer may try again."""


def replaced(entry: RunEntry) -> Replaced:
    """What ends a run whose job `entry` has taken."""
    return Replaced(
        f"run {entry.run.number} on {entry.host} (process {entry.process}) has taken this job over; this run ends"
    )


class Transactions:
    """The job's one transactional producer, and the run that holds it. One thread at a time."""

    def __init__(
        self,
        settings: Mapping[str, str],
        transactional_id: str,
        held: Holding,
    ) -> None:
        self._heard = Heard()
        own = {"transactional.id": transactional_id}
        self._settings: dict[str, Any] = {**client_settings(Purpose.PUBLISH, settings, own), "error_cb": self._heard}
        self._held = held
        self._producer: Producer | None = None
        self._attempt: Future[int] | None = None
        self._newest: bytes | None = None  # digest of what was published last
        self.run: Run | None = None
        self.unreachable = False
        self._said_s = float("-inf")

    def open(self) -> Run:
        """Takes the job: fences its holder and commits a new run entry. Replaced if a newer run wins meanwhile."""
        run_id = uuid.uuid4().hex
        while True:
            self._new_producer(first=True)
            seen = self.answered(self._held.holder)
            newest = self.answered(self._held.newest)
            self._newest = None if newest is None else newest.digest
            published = 0 if newest is None else newest.manifest.run.number
            run = Run(max(seen.run.number if seen else 0, published) + 1, run_id)
            try:
                self._transaction(Batch([self._held.entry(run)], name="run entry"))
            except _Aborted:
                self._refuse_gone([self._held.entry(run)])
            except _Unknown:
                holder = self.answered(self._held.holder)
                if holder is not None and holder.run.id == run_id:
                    self.run = holder.run
                    self._take_back()
                    return holder.run
                if holder is not None and (seen is None or holder.run != seen.run):
                    raise replaced(holder) from None
                time.sleep(random.uniform(*_JITTER_S))
            else:
                self.run = run
                return run

    def publish(self, batch: Batch) -> int:
        """Commits `batch`, whatever it takes, and gives its last message's offset, which is the manifest's.

        After an unknown outcome the newest manifest says whether it was committed.

        Raises Replaced when another run holds the job, KafkaBroken when a new run must go on from what Kafka still
        has of this one, StreamtrainError for an error no repetition can mend.
        """
        offset = self._committed(batch)
        self._newest = batch.digest
        return offset

    def _committed(self, batch: Batch) -> int:
        while True:
            try:
                return self._transaction(batch)
            except _Aborted as aborted:
                log.warning("transaction aborted, publishing again", batch=batch.name, reason=str(aborted))
                self._refuse_gone(batch.messages)
                time.sleep(random.uniform(*_JITTER_S))
            except _Unknown as unknown:
                log.warning("transaction outcome unknown", batch=batch.name, reason=str(unknown))
                self._take_back()
                newest = self.answered(self._held.newest)
                if newest is not None and newest.digest == batch.digest:
                    return newest.offset
                self._check_kept(None if newest is None else newest.digest)

    def _refuse_gone(self, messages: Iterable[tuple[str, Message]]) -> None:
        """No repetition brings a topic back that was deleted."""
        topics = sorted({topic for topic, _ in messages})
        gone = self.answered(lambda: self._held.gone(topics))
        if gone is not None:
            raise UserMistake(
                f"{gone}: expected the topic, which is written to, found that it was deleted; make it again with "
                "'streamtrain topics create', then start again"
            )

    def end(self, message: tuple[str, Message]) -> None:
        """The run's last word, tried once: what is missing then is a line of the job's history."""
        try:
            self._transaction(Batch([message], name="end of the run"))
        except (_Aborted, _Unknown, StreamtrainError) as error:
            log.debug("the run's end could not be written", reason=str(error))

    def _take_back(self) -> None:
        """A new producer in this run's name, unless the job has been taken by a newer run."""
        self._check_not_replaced()
        time.sleep(random.uniform(*_JITTER_S))
        self._new_producer()
        holder = self._check_not_replaced()  # again: a run woken after its replacement began would fence it and go on
        if holder is None or holder.run != self.run:
            raise KafkaBroken("Kafka has forgotten that this run took the job, though it had said so; a new run")

    def _check_not_replaced(self) -> RunEntry | None:
        holder = self.answered(self._held.holder)
        assert self.run is not None
        if holder is not None and holder.run != self.run and holder.run.number >= self.run.number:
            raise replaced(holder)
        return holder

    def _check_kept(self, newest: bytes | None) -> None:
        """What it had answered as committed, and no reader has seen, Kafka may have forgotten with what followed."""
        if newest != self._newest:
            raise KafkaBroken("Kafka has forgotten the publication before, though it had said so; a new run")

    def _new_producer(self, first: bool = False) -> None:
        give_up = time.monotonic() + _FIRST_ANSWER_S
        while True:
            if self._producer is not None and (self._attempt is None or self._attempt.done()):
                leave_behind(self._producer)  # another is still in the hands of a thread that was left behind
            self._producer = Producer(self._settings, logger=_librdkafka)
            try:
                self._producer.init_transactions(2.0 if first else 10.0)
                self.unreachable = False
                self._heard.clear()
                self._abort_forgotten(self._producer)
                return
            except KafkaException as cause:
                error: KafkaError = cause.args[0]
                fenced = error.code() == KafkaError._FENCED
                explained = self._explained(error, "init_transactions")
                passing = isinstance(explained, KafkaUnreachable | KafkaBroken)
                if not (fenced or passing) or isinstance(explained, TooManyOpenFiles):
                    raise explained from None
                if first and not fenced and time.monotonic() > give_up:
                    raise explained from None
                self.unreachable = not fenced
                self._say_waiting(explained)

    def _abort_forgotten(self, producer: Producer) -> None:
        """Aborts what an earlier producer of this name wrote and Kafka has forgotten to end.

        No transaction of this name is open after init_transactions. But Kafka 4.3 drops the end of one, committed or
        not, for partitions without a leader (a single node fenced by its own controller): such messages would stay
        hidden for ever, or become visible by the next commit. In an aborted transaction with a message for each of
        those partitions they end with it. Raises KafkaException like init_transactions.
        """
        while forgotten := self.answered(self._held.unfinished):
            log.warning("aborting what Kafka has forgotten to end", partitions=[f"{t}/{p}" for t, p in forgotten])
            try:
                in_background(self._abort, producer, forgotten, name="transaction").result(_ABANDON_AFTER_S)
            except TimeoutError:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None
            time.sleep(_MARKERS_S)

    def _abort(self, producer: Producer, partitions: Iterable[tuple[str, int]]) -> None:
        producer.begin_transaction()
        for topic, partition in partitions:
            producer.produce(topic, key=b"", partition=partition)
        producer.flush(_COMMIT_TIMEOUT_S)  # what was not sent is not part of a transaction
        self._retried(lambda: producer.abort_transaction(_COMMIT_TIMEOUT_S))

    def _explained(self, error: KafkaError, what: str) -> StreamtrainError:
        bootstrap = self._settings.get("bootstrap.servers", "")
        return explain(error.code(), error.str(), f"kafka: {what}", bootstrap, self._heard)

    def answered(self, read: Callable[[], T]) -> T:
        """What `read` gives, once a broker answers."""
        while True:
            try:
                answer = read()
            except TooManyOpenFiles:
                raise
            except (KafkaUnreachable, KafkaBroken) as cause:
                self.unreachable = True
                self._say_waiting(cause)
                time.sleep(random.uniform(*_JITTER_S))
                continue
            self.unreachable = False
            return answer

    def _say_waiting(self, cause: Exception) -> None:
        """Says what is waited for, and again now and then: whoever looks later is to see it."""
        if time.monotonic() - self._said_s >= _SAY_AGAIN_S:
            self._said_s = time.monotonic()
            log.warning("waiting for Kafka", reason=str(cause))

    def _transaction(self, batch: Batch) -> int:
        """One transaction, in a thread that is left behind when librdkafka does not come back from it.

        A thread left behind cannot do harm: the next producer's init_transactions fences the one it holds.
        """
        producer = self._producer
        assert producer is not None
        try:
            self._attempt = in_background(self._commit, producer, batch, name="transaction")
            return self._attempt.result(_ABANDON_AFTER_S)
        except TimeoutError:
            raise _Unknown(f"no answer from librdkafka for {_ABANDON_AFTER_S:.0f} s") from None

    def _commit(self, producer: Producer, batch: Batch) -> int:
        try:
            hit("coordinator.before_produce")
            producer.begin_transaction()
            offset = -1

            def delivered(error: KafkaError | None, message: Delivered) -> None:
                nonlocal offset
                if error is None:
                    offset = message.offset() or 0

            last = len(batch.messages) - 1
            for index, (topic, message) in enumerate(batch.messages):
                self._produce(producer, topic, message, delivered if index == last else None)
                if message.value is not None:
                    manifest = message.key is not None and message.key.endswith(b"/m")
                    hit("coordinator.after_manifest" if manifest else "coordinator.after_chunks")
            hit("coordinator.stall_in_transaction")
            batch.check()
            hit("coordinator.in_commit")
            self._retried(lambda: producer.commit_transaction(_COMMIT_TIMEOUT_S))
            hit("coordinator.after_commit")
            self._heard.clear()
            return offset
        except KafkaException as cause:
            raise self._classify(producer, cause) from cause
        except StreamtrainError:
            with suppress(KafkaException):
                self._retried(lambda: producer.abort_transaction(_COMMIT_TIMEOUT_S))
            raise

    @staticmethod
    def _produce(producer: Producer, topic: str, message: Message, delivered: Callable[..., None] | None) -> None:
        while True:
            try:
                value = bytes(message.value) if isinstance(message.value, memoryview) else message.value
                producer.produce(
                    topic, value=value, key=message.key, headers=list(message.headers), on_delivery=delivered
                )
                return
            except BufferError:
                producer.poll(0.05)

    @staticmethod
    def _retried(call: Callable[[], object]) -> None:
        """Repeats a call whose error is retriable; a time-out is not, for it says nothing about the outcome."""
        while True:
            try:
                call()
                return
            except KafkaException as cause:
                error: KafkaError = cause.args[0]
                if not error.retriable() or error.code() == KafkaError._TIMED_OUT:
                    raise
                time.sleep(0.02)

    def _classify(self, producer: Producer, cause: KafkaException) -> Exception:
        error: KafkaError = cause.args[0]
        text = f"{error.name()}: {error.str()}"
        if error.txn_requires_abort():
            try:
                self._retried(lambda: producer.abort_transaction(_COMMIT_TIMEOUT_S))
            except KafkaException as again:
                return _Unknown(f"{text}; abort: {again.args[0].str()}")
        if response_to(error.code()) >= KafkaResponse.REFUSE:
            return self._explained(error, "transaction")
        return _Aborted(text) if error.txn_requires_abort() else _Unknown(text)
