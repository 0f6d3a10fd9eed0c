"""The trainer's transactions: who holds the job, and each publication in exactly one committed transaction.

The coordinator's state machine: after an unknown outcome the newest run entry and the newest manifest are the only
truth. librdkafka has no KIP-890: a timed-out commit is never followed by another transaction on the same producer.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from streamtrain import _native
from streamtrain._native import KafkaCode, KafkaOutcome, KafkaResponse
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
from streamtrain.kafka.clients import ANY_PARTITION, KafkaProducer
from streamtrain.kafka.errors import response_to
from streamtrain.kafka.renewing import in_background, leave_behind
from streamtrain.kafka.settings import Purpose
from streamtrain.log import get_logger
from streamtrain.topics.control import RunEntry
from streamtrain.topics.manifest import Run
from streamtrain.topics.topic import Message

log = get_logger(__name__)
T = TypeVar("T")

_COMMIT_TIMEOUT_MS = 9_000  # below transaction.timeout.ms, so that an unknown outcome is met here first
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


class _Failed(Exception):
    """A call of librdkafka's said `outcome`."""

    def __init__(self, outcome: KafkaOutcome) -> None:
        super().__init__(f"{_native.kafka_error_name(outcome.code)}: {outcome.text}")
        self.outcome = outcome


def _done(outcome: KafkaOutcome) -> None:
    if outcome.code:
        raise _Failed(outcome)


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
        self._settings, self._id = settings, transactional_id
        self._held = held
        self._producer: KafkaProducer | None = None
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
            self._producer = KafkaProducer.open(Purpose.PUBLISH, self._settings, self._id)
            try:
                _done(self._producer.native.init_transactions(2_000 if first else 10_000))
                self.unreachable = False
                self._producer.answered()
                self._abort_forgotten(self._producer)
                return
            except _Failed as cause:
                fenced = cause.outcome.code == KafkaCode.FENCED
                self._producer.native.poll(0)  # serves the error callback
                explained = self._explained(self._producer, cause.outcome, "init_transactions")
                passing = isinstance(explained, KafkaUnreachable | KafkaBroken)
                if not (fenced or passing) or isinstance(explained, TooManyOpenFiles):
                    raise explained from None
                if first and not fenced and time.monotonic() > give_up:
                    raise explained from None
                self.unreachable = not fenced
                self._say_waiting(explained)

    def _abort_forgotten(self, producer: KafkaProducer) -> None:
        """Aborts what an earlier producer of this name wrote and Kafka has forgotten to end.

        No transaction of this name is open after init_transactions. But Kafka 4.3 drops the end of one, committed or
        not, for partitions without a leader (a single node fenced by its own controller): such messages would stay
        hidden for ever, or become visible by the next commit. In an aborted transaction with a message for each of
        those partitions they end with it. Raises _Failed like init_transactions.
        """
        while forgotten := self.answered(self._held.unfinished):
            log.warning("aborting what Kafka has forgotten to end", partitions=[f"{t}/{p}" for t, p in forgotten])
            try:
                in_background(self._abort, producer, forgotten, name="transaction").result(_ABANDON_AFTER_S)
            except TimeoutError:
                raise _Failed(KafkaOutcome(KafkaCode.TIMED_OUT, text="did not return")) from None
            time.sleep(_MARKERS_S)

    def _abort(self, producer: KafkaProducer, partitions: Iterable[tuple[str, int]]) -> None:
        _done(producer.native.begin_transaction())
        for topic, partition in partitions:
            self._produce(producer, topic, Message(b"", None), partition=partition)
        producer.native.flush(_COMMIT_TIMEOUT_MS)  # what was not sent is not part of a transaction
        self._retried(lambda: producer.native.abort_transaction(_COMMIT_TIMEOUT_MS))

    @staticmethod
    def _explained(producer: KafkaProducer, outcome: KafkaOutcome, what: str) -> StreamtrainError:
        return producer.explain(outcome.code, outcome.text, f"kafka: {what}")

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
        finally:
            producer.hear()

    def _commit(self, producer: KafkaProducer, batch: Batch) -> int:
        try:
            hit("coordinator.before_produce")
            _done(producer.native.begin_transaction())
            last = len(batch.messages) - 1
            for index, (topic, message) in enumerate(batch.messages):
                self._produce(producer, topic, message, note=index == last)
                if message.value is not None:
                    manifest = message.key is not None and message.key.endswith(b"/m")
                    hit("coordinator.after_manifest" if manifest else "coordinator.after_chunks")
            hit("coordinator.stall_in_transaction")
            batch.check()
            hit("coordinator.in_commit")
            self._retried(lambda: producer.native.commit_transaction(_COMMIT_TIMEOUT_MS))
            hit("coordinator.after_commit")
            producer.hear()
            producer.answered()
            return producer.native.noted_offset
        except _Failed as cause:
            raise self._classify(producer, cause) from cause
        except StreamtrainError:
            with suppress(_Failed):
                self._retried(lambda: producer.native.abort_transaction(_COMMIT_TIMEOUT_MS))
            raise

    @staticmethod
    def _produce(
        producer: KafkaProducer, topic: str, message: Message, partition: int = ANY_PARTITION, note: bool = False
    ) -> None:
        headers = list(message.headers)
        try:
            producer.produce(topic, message.value, message.key, partition=partition, headers=headers, note=note)
        except _native.KafkaFailure as failure:
            raise _Failed(KafkaOutcome(failure.args[0], text=failure.args[1])) from None

    @staticmethod
    def _retried(call: Callable[[], KafkaOutcome]) -> None:
        """Repeats a call whose error is retriable; a time-out is not, for it says nothing about the outcome."""
        while True:
            outcome = call()
            if not outcome.code:
                return
            if not outcome.retriable or outcome.code == KafkaCode.TIMED_OUT:
                raise _Failed(outcome)
            time.sleep(0.02)

    def _classify(self, producer: KafkaProducer, cause: _Failed) -> Exception:
        outcome, text = cause.outcome, str(cause)
        if outcome.requires_abort:
            try:
                self._retried(lambda: producer.native.abort_transaction(_COMMIT_TIMEOUT_MS))
            except _Failed as again:
                return _Unknown(f"{text}; abort: {again.outcome.text}")
        if response_to(outcome.code) >= KafkaResponse.REFUSE:
            return self._explained(producer, outcome, "transaction")
        return _Aborted(text) if outcome.requires_abort else _Unknown(text)
