"""Publications as Kafka transactions: the job's one transactional producer, and what watches that the job is its own.

Used by the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeVar

from streamtrain.background import in_background
from streamtrain.errors import KafkaBroken
from streamtrain.job import Job
from streamtrain.kafka.control import ControlTopic
from streamtrain.kafka.transaction import Transactions, replaced
from streamtrain.origins.origin import Origin
from streamtrain.run.dead_letters import Letters, LettersFirst
from streamtrain.run.job_topics import JobTopics
from streamtrain.run.lineage import Lineage
from streamtrain.run.publication import Assembled
from streamtrain.run.watch import Watch
from streamtrain.topics.manifest import Positions, Run

T = TypeVar("T")

_PENDING_S = 60.0  # of a publication, counted while Kafka answers


class KafkaPublisher:
    """A `Publisher`. `consumer` and `producer` are librdkafka's settings, `names` the topics' by key."""

    advice = "look at them with 'streamtrain read JOB dead-letters --from-beginning'"
    awaited = None

    def __init__(
        self,
        job: Job,
        origin: Origin,
        topics: JobTopics,
        consumer: Mapping[str, str],
        producer: Mapping[str, str],
        names: Mapping[str, str],
    ) -> None:
        self._origin = origin
        self._topics = topics
        self._consumer = consumer
        self._names = names
        self._transactions = Transactions(producer, job.name, topics)
        self._watch: Watch | None = None
        self._checked: Future[None] | None = None
        self._pending_from_s = 0.0

    def name_of(self, partition: int) -> str:
        return self._origin.name_of(partition)

    def open(self) -> Run:
        """Takes the job: fences its holder and commits a new run entry."""
        return self._transactions.open()

    def answered(self, read: Callable[[], T]) -> T:
        """What `read` gives, once a broker answers."""
        return self._transactions.answered(read)

    def watch(self, run: Run) -> None:
        """From now on heed() knows when a newer run has taken the job."""
        control = ControlTopic(self._consumer, self._names["control"])  # nobody else uses it
        self._watch = Watch(run, control.look)

    @property
    def unreachable(self) -> bool:
        return self._transactions.unreachable or (self._watch is not None and self._watch.unreachable)

    def prepare(self, lineage: Lineage) -> None:
        """All that is published has been read by now: nothing of it may come from another origin."""
        self._checked = in_background(self._check_origin, lineage, name="origin")

    def _check_origin(self, lineage: Lineage) -> None:
        seen = Positions(lineage.topic_id, tuple(lineage.positions))
        self.answered(lambda: self._origin.check(lineage.version, seen))

    def publish(self, assembled: Assembled, letters: Letters) -> int:
        messages = LettersFirst(letters, self._names["dead_letters"], assembled.batch.messages)
        batch = replace(assembled.batch, messages=messages)
        if self._checked is not None:
            batch = replace(batch, check=self._checked.result)
        return self._transactions.publish(batch)

    def published(self, assembled: Assembled) -> None:
        self._origin.trained(assembled.positions)

    def heed(self, pending: bool) -> None:
        """Replaced where a newer run has the job; KafkaBroken where a new one must do what this one cannot;
        TooManyOpenFiles where Kafka cannot be reached for want of files."""
        assert self._watch is not None
        if self._watch.replaced_by is not None:
            raise replaced(self._watch.replaced_by)
        if self._watch.no_more_files is not None:
            raise self._watch.no_more_files
        if not pending:
            self._pending_from_s = self._watch.answered_s
        elif self._watch.answered_s - self._pending_from_s > _PENDING_S:
            raise KafkaBroken(f"a publication is pending for {_PENDING_S:.0f} s while Kafka answers; a new run")

    def say_end(self, exit_code: int, reason: str) -> None:
        """Writes to control how this run ends."""
        if self._transactions.run is not None:
            self._transactions.end(self._topics.end(self._transactions.run, exit_code, reason))
