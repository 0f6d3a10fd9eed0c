"""The publisher on Kafka: what a publication is in a transaction, and when a run ends: another has the job, or Kafka
answers and takes no publication.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streamtrain.errors import KafkaBroken, Replaced, TooManyOpenFiles, UserMistake
from streamtrain.kafka.transaction import Batch
from streamtrain.run.dead_letters import Letters
from streamtrain.run.kafka_publisher import KafkaPublisher
from streamtrain.run.lineage import Lineage
from streamtrain.topics import control, rounds
from streamtrain.topics.control import RunEntry
from streamtrain.topics.manifest import Position, Positions, Run
from streamtrain.topics.topic import all_topics
from tests.checks.verify.good_job import GoodJob

NAMES = {key: f"the {key}" for key in all_topics()}


class Transactions:
    """Takes each batch once its check is through."""

    unreachable = False

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def answered(self, read: Any) -> Any:
        return read()

    def publish(self, batch: Batch) -> int:
        batch.check(10)
        self.batches.append(batch)
        return 7


class Origin:
    """Of records of one topic id."""

    def __init__(self, topic_id: str) -> None:
        self._topic_id = topic_id
        self.seen: list[Any] = []

    def check(self, version: int, seen: Positions) -> None:
        if seen.topic_id != self._topic_id:
            raise UserMistake(f"another topic after {version}")

    def trained(self, positions: Any) -> None:
        self.seen += positions


def published(topic_id: str = "topic") -> Any:
    """A publisher, and what it was made of."""
    watch = SimpleNamespace(replaced_by=None, no_more_files=None, unreachable=False, answered_s=0.0)
    parts = SimpleNamespace(origin=Origin(topic_id), transactions=Transactions(), watch=watch)
    made: Any = KafkaPublisher
    return made(parts.origin, parts.transactions, watch, NAMES), parts


@pytest.fixture(scope="module")
def job() -> GoodJob:
    """Two publications: that which begins the lineage, and one of its first rounds."""
    job = GoodJob()
    job.begin()
    job.produce()
    job.train()
    return job


def test_a_publication_is_one_transaction_with_the_manifest_last(job: GoodJob) -> None:
    publisher, parts = published()
    made = job.assembled
    assert publisher.publish(made, Letters.none()) == 7
    (batch,) = parts.transactions.batches
    newest = control.Newest(2, made.snapshot.digest, job.lineage.id)
    assert len(batch.messages) == len(messages := list(batch.messages))
    assert messages == [
        *(("the rounds", message) for message in rounds.messages(made.log)),
        ("the control", control.newest_message(newest)),
        *(("the snapshots", message) for message in made.snapshot.messages),
    ]
    assert messages[-1][1].key.endswith(b"/m") and len(rounds.messages(made.log)) == 1
    assert (batch.digest, batch.name) == (made.snapshot.digest, "snapshot 2")
    publisher.published(made)
    assert parts.origin.seen == made.positions != []


def test_nothing_of_another_origin_is_committed(job: GoodJob) -> None:
    publisher, parts = published()
    publisher.prepare(Lineage("b" * 32, 1, -1, 0, [Position(0)], "topic"))
    publisher.publish(job.assembled, Letters.none())
    publisher.prepare(Lineage("b" * 32, 1, -1, 0, [Position(0)], "another"))
    with pytest.raises(UserMistake, match="another topic after"):
        publisher.publish(job.assembled, Letters.none())
    assert len(parts.transactions.batches) == 1


def test_a_publication_that_stays_pending_while_kafka_answers_ends_the_run() -> None:
    publisher, parts = published()
    parts.watch.answered_s = 100.0
    publisher.heed(pending=False)
    for answered_s in (100.0, 160.0):  # while Kafka is away it stands still
        parts.watch.answered_s = answered_s
        publisher.heed(pending=True)
    parts.watch.answered_s = 160.1
    with pytest.raises(KafkaBroken, match="pending for 60 s"):
        publisher.heed(pending=True)


def test_a_replaced_run_leaves() -> None:
    publisher, parts = published()
    parts.watch.replaced_by = RunEntry(Run(3, "b" * 32), "job", "host", 1, 1, "build")
    with pytest.raises(Replaced, match="run 3"):
        publisher.heed(pending=False)


def test_without_open_files_the_run_ends() -> None:
    publisher, parts = published()
    parts.watch.no_more_files = TooManyOpenFiles("none left")
    with pytest.raises(TooManyOpenFiles):
        publisher.heed(pending=False)


def test_kafka_is_away_where_either_of_its_clients_says_so() -> None:
    publisher, parts = published()
    assert not publisher.unreachable
    parts.watch.unreachable = True
    assert publisher.unreachable
    parts.watch.unreachable, parts.transactions.unreachable = False, True
    assert publisher.unreachable
