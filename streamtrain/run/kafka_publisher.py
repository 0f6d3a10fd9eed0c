"""Publications as messages of one Kafka transaction each, while nobody else has taken the job.

Used by the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeVar

from streamtrain.background import in_background
from streamtrain.errors import KafkaBroken
from streamtrain.kafka.transaction import Batch, Transactions, replaced
from streamtrain.record_sources.record_source import RecordSource
from streamtrain.run.lineage import Lineage
from streamtrain.run.publication import Assembled
from streamtrain.run.unpublished_dead_letters import AllLetters, Letters, LettersFirst
from streamtrain.run.watch import Watch
from streamtrain.telemetry.tracing import Tracing
from streamtrain.topics import control, rounds, snapshots
from streamtrain.topics.manifest import Positions
from streamtrain.topics.topic import Message

T = TypeVar("T")

_PENDING_S = 60.0  # of a publication, counted while Kafka answers


def messages_of(assembled: Assembled, names: Mapping[str, str]) -> list[tuple[str, Message]]:
    """Returns the messages of a publication, each with its topic: the round logs, control's entry of what was published
    last, then the snapshot, whose manifest comes last. `names` has the names of the topics by key."""
    logs, snapshot = assembled.logs, assembled.snapshot
    newest = control.Newest(logs.version, snapshot.digest, logs.lineage)
    return [
        *((names[rounds.TOPIC.key], message) for log in logs for message in rounds.messages(log)),
        (names[control.TOPIC.key], control.newest_message(newest)),
        *((names[snapshots.TOPIC.key], message) for message in snapshot.messages),
    ]


def _span_attributes(assembled: Assembled, letters: Letters | AllLetters) -> dict[str, int | str]:
    """Returns the attributes of a publication's span."""
    logs, manifest = assembled.logs, assembled.snapshot.manifest
    return {
        "streamtrain.job": manifest.job,
        "streamtrain.version": logs.version,
        "streamtrain.digest": assembled.snapshot.digest.hex(),
        "streamtrain.lineage": logs.lineage,
        "streamtrain.run": logs.run.number,
        "streamtrain.round": manifest.round,
        "streamtrain.rounds": len(logs.rounds),
        "streamtrain.rows": logs.rows_trained,
        "streamtrain.rows_seen": manifest.rows_seen,
        "streamtrain.dead_letters": letters.count,
        "streamtrain.bytes": letters.bytes + assembled.bytes,
    }


class KafkaPublisher:
    """A `Publisher` of a job that `transactions` holds; `watch` knows when a newer run has taken it, `names` are the
    topics' by key."""

    advice = "look at them with 'streamtrain read JOB dead-letters --from-beginning'"
    awaited = None

    def __init__(
        self, record_source: RecordSource, transactions: Transactions, watch: Watch, names: Mapping[str, str],
        tracing: Tracing | None = None,
    ) -> None:
        self._tracing = tracing
        self._record_source = record_source
        self._transactions = transactions
        self._watch = watch
        self._names = names
        self._checked: Future[None] | None = None
        self._pending_from_s = 0.0

    def name_of(self, partition: int) -> str:
        return self._record_source.name_of(partition)

    def answered(self, read: Callable[[], T]) -> T:
        """Returns what `read` returns, once a broker answers."""
        return self._transactions.answered(read)

    @property
    def unreachable(self) -> bool:
        return self._transactions.unreachable or self._watch.unreachable

    def prepare(self, lineage: Lineage) -> None:
        """Starts the check that what is published next was read from this record source."""
        self._checked = in_background(self._check_record_source, lineage, name="record-source")

    def _check_record_source(self, lineage: Lineage) -> None:
        seen = Positions(lineage.topic_id, tuple(lineage.positions))
        self.answered(lambda: self._record_source.check(lineage.version, seen))

    def publish(self, assembled: Assembled, letters: Letters | AllLetters) -> int:
        messages = LettersFirst(letters, self._names["dead_letters"], messages_of(assembled, self._names))
        batch = Batch(messages, f"snapshot {assembled.logs.version}", assembled.snapshot.digest)
        if self._checked is not None:
            batch = replace(batch, check=self._checked.result)
        if self._tracing is None:
            return self._transactions.publish(batch)
        with self._tracing.publication(assembled.logs.first.job, _span_attributes(assembled, letters)):
            return self._transactions.publish(batch)

    def published(self, assembled: Assembled) -> None:
        self._record_source.trained(assembled.positions)

    def heed(self, pending: bool) -> None:
        """Replaced where a newer run has the job; KafkaBroken where a new one must do what this one cannot;
        TooManyOpenFiles where Kafka cannot be reached for want of files."""
        if self._watch.replaced_by is not None:
            raise replaced(self._watch.replaced_by)
        if self._watch.no_more_files is not None:
            raise self._watch.no_more_files
        if not pending:
            self._pending_from_s = self._watch.answered_s
        elif self._watch.answered_s - self._pending_from_s > _PENDING_S:
            raise KafkaBroken(f"a publication is pending for {_PENDING_S:.0f} s while Kafka answers; a new run")
