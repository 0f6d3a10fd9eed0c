"""A publication that is due closes the open round and takes it, however long the round could stay open."""

from __future__ import annotations

import signal
from pathlib import Path

from streamtrain._native import CloseReason
from streamtrain.kafka.round_logs import round_logs
from tests.e2e.harness import LiveJob


def closed_by(job: LiveJob) -> list[int]:
    logs = list(round_logs(job.job.kafka_consumer(), job.job.topic("rounds").name or ""))
    return [int(reason) for log in logs for reason in log.rounds["closed_by"]]


def test_rows_are_published_at_the_publications_interval_not_at_the_rounds(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, round_interval="1h", publish_interval="100ms")
    running = job.start("train")
    for rows in (10, 20, 30):  # far too few for a round
        job.produce(10, seed=rows)
        running.wait_event("published", rows=rows)
    running.process.send_signal(signal.SIGTERM)
    assert running.finish() == 0
    reasons = closed_by(job)
    assert set(reasons) <= {CloseReason.PUBLICATION, CloseReason.DRAINED}
    assert reasons.count(CloseReason.PUBLICATION) >= 3
    assert job.verified()["rows"]["trained"] == 30
    job.replayed()


def test_rounds_that_close_only_when_full_stay_open(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", publish_interval="1ms")
    running = job.start("train")
    for turn in range(1, 5):  # each leaves a round open
        job.produce(1000, seed=turn)
        running.wait_event("published", rows=1000 * turn - 500)
    running.process.send_signal(signal.SIGTERM)
    assert running.finish() == 0
    *full, last = closed_by(job)
    assert set(full) == {CloseReason.FULL} and last == CloseReason.DRAINED


def test_a_publication_that_is_not_taken_at_once_closes_one_round(kafka, tmp_path: Path) -> None:
    """The third transaction stalls while rows come in and the next publication is due."""
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="1h", publish_interval="100ms")
    running = job.start("train", STREAMTRAIN_FAILPOINTS="coordinator.stall_in_transaction=4~3")
    job.produce(10)
    running.wait_event("published", rows=10)
    for seed in range(200):
        job.produce(2, seed=seed)
    running.wait_event("published", rows=410)
    running.process.send_signal(signal.SIGTERM)
    assert running.finish() == 0
    reasons = closed_by(job)
    published = [event for event in running.events if event["event"] == "published"]
    assert reasons.count(CloseReason.PUBLICATION) <= len(published) + 1, (reasons, len(published))
