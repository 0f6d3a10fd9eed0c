"""The trainer's transactions: who holds the job, and each publication in exactly one committed transaction.

The coordinator's state machine: after an unknown ending the newest run entry and the newest manifest are the only
truth. What ends how, and what is made again, native/kafka/transaction.h says for all who make transactions.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from streamtrain import _native
from streamtrain._native import KafkaCode, KafkaEnding, KafkaOutcome, KafkaResponse, KafkaTransactionEnd
from streamtrain.errors import (
    KafkaBroken,
    KafkaUnreachable,
    Replaced,
    StreamtrainError,
    TooManyOpenFiles,
    UserMistake,
)
from streamtrain.failpoints import hit
from streamtrain.kafka.clients import ANY_PARTITION, TransactionalProducer
from streamtrain.kafka.error_codes import response_to
from streamtrain.kafka.settings import Purpose
from streamtrain.log import Reminder, get_logger
from streamtrain.topics.chunks import Located
from streamtrain.topics.control import RunEntry, transactional_id
from streamtrain.topics.manifest import Run
from streamtrain.topics.topic import Message

log = get_logger(__name__)
T = TypeVar("T")

_CHECK_S = 5.0  # of waiting for a batch's check: below transaction.timeout.ms
_FIRST_ANSWER_S = 10.0  # how long a start waits for a broker before it says that there is none
_MARKERS_S = 0.1  # from the answer to an abort until readers see it
_JITTER_S = (0.05, 0.5)  # before a fenced producer is made again: two trainers must not keep fencing each other in step


class Messages(Protocol):
    """(topic, message) in the order in which they are written; gone through again when a transaction is made again."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[tuple[str, Message]]: ...


@dataclass(frozen=True)
class Batch:
    """The content of one transaction: (topic, message) pairs, in this order; `digest` is the snapshot's.

    Nothing is committed before `check` has returned, which is given how many seconds it may take and has the time that
    the messages take; what it raises ends the transaction, which is made again after a TimeoutError.
    """

    messages: Messages
    name: str = ""
    digest: bytes = b""
    check: Callable[[float], object] = lambda timeout_s: None


class Unfinished(NamedTuple):
    """A partition with a transaction that has no end; `shared`: with others, so that it may be theirs and go on."""

    topic: str
    partition: int
    shared: bool


class Holding(Protocol):
    """The lease of a job, read from its own topics; raises KafkaUnreachable if they cannot be read to the end."""

    def holder(self) -> RunEntry | None:
        """The entry of the newest run."""

    def older_build_runs(self) -> bool:
        """Tells a newest run of another build that has not said that it ended."""

    def newest(self) -> Located | None:
        """The newest manifest; None where there is none, or none that can be read."""

    def gone(self, topics: Iterable[str]) -> str | None:
        """One of these topics that Kafka holds no more."""

    def unfinished(self) -> Sequence[Unfinished]:
        """Returns the partitions with a transaction that is neither committed nor aborted."""

    def entry(self, run: Run) -> tuple[str, Message]:
        """Topic and message by which `run` takes the job."""


class _Unknown(Exception):
    """The transaction may or may not have been committed; its producer has been given up."""


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
    """Returns the error that ends a run after `entry` has taken its job."""
    return Replaced(
        f"run {entry.run.number} on {entry.host} (process {entry.process}) has taken this job over; this run ends"
    )


class Transactions:
    """The job's one transactional producer, and the run that holds it. One thread at a time."""

    def __init__(
        self,
        settings: Mapping[str, str],
        job: str,
        lease: Holding,
    ) -> None:
        self._settings, self._job = settings, job
        self._lease = lease
        self._producer: TransactionalProducer | None = None
        self._newest: bytes | None = None  # digest of what was published last
        self.run: Run | None = None
        self.unreachable = False
        self._reminder = Reminder()

    def open(self) -> Run:
        """Takes the job: fences its holder and commits a new run entry. Replaced if a newer run wins meanwhile."""
        run_id = uuid.uuid4().hex
        while True:
            self._new_producer(first=True)
            seen = self.answered(self._lease.holder)
            if self.answered(self._lease.older_build_runs):
                self._fence_bare_name()
            newest = self.answered(self._lease.newest)
            self._newest = None if newest is None else newest.digest
            published = 0 if newest is None else newest.manifest.run.number
            run = Run(max(seen.run.number if seen else 0, published) + 1, run_id)
            try:
                self._transaction(Batch([self._lease.entry(run)], name="run entry"))
            except _Aborted:
                self._refuse_gone([self._lease.entry(run)])
            except _Unknown:
                holder = self.answered(self._lease.holder)
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

    def _fence_bare_name(self) -> None:
        """Ends the producer of a build before the transactional id began with "streamtrain."."""
        with closing(TransactionalProducer.open(Purpose.PUBLISH, self._settings, self._job)) as bare:
            outcome = bare.native.prepare()
        if outcome.code:
            reason = str(self._explained(bare, outcome))
            log.warning("a trainer of an older build may go on beside this one; end it", reason=reason)

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
                newest = self.answered(self._lease.newest)
                if newest is not None and newest.digest == batch.digest:
                    return newest.offset
                self._check_kept(None if newest is None else newest.digest)

    def _refuse_gone(self, messages: Messages) -> None:
        """No repetition brings a topic back that was deleted."""
        topics = sorted({topic for topic, _ in messages})
        gone = self.answered(lambda: self._lease.gone(topics))
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
        holder = self.answered(self._lease.holder)
        assert self.run is not None
        if holder is not None and holder.run != self.run and holder.run.number >= self.run.number:
            raise replaced(holder)
        return holder

    def _check_kept(self, newest: bytes | None) -> None:
        """Raises KafkaBroken if Kafka has forgotten the publication before, though it had reported it as committed.

        Kafka can forget a commit that no reader has seen, together with what followed.
        """
        if newest != self._newest:
            raise KafkaBroken("Kafka has forgotten the publication before, though it had said so; a new run")

    def _new_producer(self, first: bool = False) -> None:
        if self._producer is None:
            self._producer = TransactionalProducer.open(Purpose.PUBLISH, self._settings, transactional_id(self._job))
        else:
            self._producer.close()
        producer = self._producer
        give_up = time.monotonic() + _FIRST_ANSWER_S
        while True:
            try:
                _done(producer.native.prepare())
                self.unreachable = False
                producer.answered()
                self._abort_forgotten(producer)
                return
            except _Failed as cause:
                fenced = cause.outcome.code == KafkaCode.FENCED
                explained = self._explained(producer, cause.outcome)
                passing = isinstance(explained, KafkaUnreachable | KafkaBroken)
                if not (fenced or passing) or isinstance(explained, TooManyOpenFiles):
                    raise explained from None
                if first and not fenced and time.monotonic() > give_up:
                    raise explained from None
                self.unreachable = not fenced
                if self._reminder.due():
                    log.warning("waiting for Kafka", reason=str(explained))
                time.sleep(random.uniform(*_JITTER_S))

    def _abort_forgotten(self, producer: TransactionalProducer) -> None:
        """Aborts what an earlier producer of this name wrote and Kafka has forgotten to end.

        No transaction of this name is open after prepare(). But Kafka 4.3 drops the end of one, committed or not, for
        partitions without a leader (a single node fenced by its own controller): such messages would stay hidden for
        ever, or become visible by the next commit. In an aborted transaction with a message for each of those
        partitions they end with it. Of a partition that others write to once: what is open there then is theirs.
        Raises _Failed.
        """
        ended: set[Unfinished] = set()
        while forgotten := [each for each in self.answered(self._lease.unfinished) if each not in ended]:
            places = [f"{each.topic}/{each.partition}" for each in forgotten]
            say = log.info if all(each.shared for each in forgotten) else log.warning
            say("aborting what Kafka has forgotten to end", partitions=places)
            end = self._aborted(producer, forgotten)
            if end.ending is not KafkaEnding.ABORTED:
                raise _Failed(end.why)
            ended |= {each for each in forgotten if each.shared}
            time.sleep(_MARKERS_S)

    def _aborted(self, producer: TransactionalProducer, partitions: Iterable[Unfinished]) -> KafkaTransactionEnd:
        try:
            _done(producer.native.begin())
            for topic, partition, _ in partitions:
                self._produce(producer, topic, Message(b"", None), partition=partition)
        except _Failed as cause:
            return producer.native.fail(cause.outcome)
        return producer.native.abort("it ends what Kafka has forgotten to end")

    @staticmethod
    def _explained(producer: TransactionalProducer, outcome: KafkaOutcome) -> StreamtrainError:
        return producer.explain(outcome.code, outcome.text, "kafka")

    def answered(self, read: Callable[[], T]) -> T:
        """Returns the result of `read`; retries until a broker answers."""
        while True:
            try:
                answer = read()
            except TooManyOpenFiles:
                raise
            except (KafkaUnreachable, KafkaBroken) as cause:
                self.unreachable = True
                if self._reminder.due():
                    log.warning("waiting for Kafka", reason=str(cause))
                time.sleep(random.uniform(*_JITTER_S))
                continue
            self.unreachable = False
            return answer

    def _transaction(self, batch: Batch) -> int:
        producer = self._producer
        assert producer is not None
        end = self._ended(producer, batch)
        if end.ending is KafkaEnding.COMMITTED:
            hit("coordinator.after_commit")
            producer.answered()
            return producer.native.noted_offset
        if response_to(end.why.code) >= KafkaResponse.REFUSE:
            raise self._explained(producer, end.why)
        producer.hear()
        text = str(_Failed(end.why))
        raise _Aborted(text) if end.ending is KafkaEnding.ABORTED else _Unknown(text)

    def _ended(self, producer: TransactionalProducer, batch: Batch) -> KafkaTransactionEnd:
        native = producer.native
        try:
            hit("coordinator.before_produce")
            _done(native.begin())
            last = len(batch.messages) - 1
            for index, (topic, message) in enumerate(batch.messages):
                self._produce(producer, topic, message, note=index == last)
                if message.value is not None:
                    manifest = message.key is not None and message.key.endswith(b"/m")
                    hit("coordinator.after_manifest" if manifest else "coordinator.after_chunks")
            hit("coordinator.stall_in_transaction")
            batch.check(_CHECK_S)
            hit("coordinator.in_commit")
            return native.commit()
        except _Failed as cause:
            return native.fail(cause.outcome)
        except TimeoutError:
            return native.abort(f"what is asked before the commit has no answer for {_CHECK_S:.0f} s")
        except StreamtrainError:
            native.abort("refused by what is asked before the commit")
            raise

    @staticmethod
    def _produce(
        producer: TransactionalProducer,
        topic: str,
        message: Message,
        partition: int = ANY_PARTITION,
        note: bool = False,
    ) -> None:
        headers = list(message.headers)
        if code := producer.produce(topic, message.value, message.key, partition=partition, headers=headers, note=note):
            raise _Failed(_native.kafka_not_queued(code, topic))
