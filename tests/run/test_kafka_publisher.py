"""When the publisher on Kafka ends a run: another has the job, or Kafka answers and takes no publication."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streamtrain.errors import KafkaBroken, Replaced, TooManyOpenFiles
from streamtrain.run.kafka_publisher import KafkaPublisher
from streamtrain.topics.control import RunEntry
from streamtrain.topics.manifest import Run


def watched(**seen: Any) -> tuple[KafkaPublisher, SimpleNamespace]:
    publisher = KafkaPublisher.__new__(KafkaPublisher)
    watch = SimpleNamespace(**{"replaced_by": None, "no_more_files": None, "answered_s": 0.0, **seen})
    publisher._watch = watch  # type: ignore[assignment]
    publisher._pending_from_s = 0.0
    return publisher, watch


def test_a_publication_that_stays_pending_while_kafka_answers_ends_the_run() -> None:
    publisher, watch = watched(answered_s=100.0)
    publisher.heed(pending=False)
    for answered_s in (100.0, 160.0):  # while Kafka is away it stands still
        watch.answered_s = answered_s
        publisher.heed(pending=True)
    watch.answered_s = 160.1
    with pytest.raises(KafkaBroken, match="pending for 60 s"):
        publisher.heed(pending=True)


def test_a_replaced_run_leaves() -> None:
    newer = RunEntry(Run(3, "b" * 32), "job", "host", 1, 1, "build")
    with pytest.raises(Replaced, match="run 3"):
        watched(replaced_by=newer)[0].heed(pending=False)


def test_without_open_files_the_run_ends() -> None:
    with pytest.raises(TooManyOpenFiles):
        watched(no_more_files=TooManyOpenFiles("none left"))[0].heed(pending=False)
