"""Follows a job's snapshots as arrays by name. Needs a bootstrap address and the job's name, no job file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from streamtrain.clients.arguments import address, job_name, version_of
from streamtrain.clients.snapshot_arrays import Snapshot, snapshot_of
from streamtrain.kafka.follower import follow
from streamtrain.kafka.snapshot_reader import SnapshotTopic, Version


def follow_snapshots(
    job: str,
    bootstrap: str,
    kafka: Mapping[str, object] | None = None,
    *,
    newest_only: bool = False,
    stop: Callable[[], bool] = lambda: False,
    version: Version | None = None,
) -> Iterator[Snapshot]:
    """The newest snapshot at once, then each new one as it is published; versions only go up.

    `version`: a number from 1 gives that snapshot and ends; "best" gives the best one by early stopping, and another
    as soon as the newest snapshot names another, which may be an older one. UserMistake at the first snapshot where
    the topic does not hold it.

    One with a missing or altered chunk, or without a model, is left out, with a warning in the log. `newest_only`
    passes over those already outdated when their turn comes. Waits where there is none yet; ends when `stop()` is
    true, looked at every 0.1 s. `kafka` holds librdkafka properties. Raises UserMistake for a name or an address that
    can be none, and at the first snapshot KafkaUnreachable when no broker answers.
    """
    name, where = job_name("follow_snapshots", job), address("follow_snapshots", bootstrap)
    target = version_of("follow_snapshots", version)
    return _followed(SnapshotTopic(name, where, kafka), stop, newest_only, target)


def _followed(
    opened: SnapshotTopic, stop: Callable[[], bool], newest_only: bool, version: Version | None
) -> Iterator[Snapshot]:
    with opened as topic:
        yield from follow(topic, snapshot_of, stop, newest_only=newest_only, version=version)
