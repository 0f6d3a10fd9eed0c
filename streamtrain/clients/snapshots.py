"""Follows a job's snapshots as arrays by name. Needs a bootstrap address and the job's name, no job file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from streamtrain.clients.door import address, job_name
from streamtrain.columns.served import schema_and_model
from streamtrain.compute import snapshot as payload
from streamtrain.compute.spec import Array
from streamtrain.kafka.chunks import Stored
from streamtrain.kafka.follower import follow
from streamtrain.kafka.snapshots import SnapshotTopic
from streamtrain.topics.manifest import Manifest


@dataclass(frozen=True)
class Snapshot:
    """One published snapshot. `parameters` are float32 arrays, `statistics` float64 and int64 ones; all read-only."""

    version: int
    digest: str
    untrained: bool
    parameters: Mapping[str, Array]
    statistics: Mapping[str, Array]
    manifest: Manifest

    @property
    def age_s(self) -> float:
        """Seconds since the trainer made it, by this machine's clock."""
        return max(0.0, time.time() - self.manifest.created_ms / 1000)


def snapshot_of(stored: Stored) -> Snapshot:
    """SnapshotError for what holds no columns and model, or not that model's arrays."""
    _, model = schema_and_model(stored.manifest)
    arrays = payload.decode(stored.model)
    payload.check(model.layout, arrays)
    parameters = {name: array for name, array in arrays.items() if array.dtype == np.float32}
    statistics = {name: array for name, array in arrays.items() if array.dtype != np.float32}
    manifest = stored.manifest
    return Snapshot(manifest.version, stored.digest.hex(), manifest.untrained, parameters, statistics, manifest)


def follow_snapshots(
    job: str,
    bootstrap: str,
    kafka: Mapping[str, object] | None = None,
    *,
    newest_only: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Snapshot]:
    """The newest snapshot at once, then each new one as it is published; versions only go up.

    One with a missing or altered chunk, or without a model, is left out, with a warning in the log. `newest_only`
    passes over those already outdated when their turn comes. Waits where there is none yet; ends when `stop()` is
    true, looked at every 0.1 s. `kafka` holds librdkafka properties. Raises UserMistake for a name or an address that
    can be none, and at the first snapshot KafkaUnreachable when no broker answers.
    """
    name, where = job_name("follow_snapshots", job), address("follow_snapshots", bootstrap)
    return _followed(SnapshotTopic(name, where, kafka), stop, newest_only)


def _followed(opened: SnapshotTopic, stop: Callable[[], bool], newest_only: bool) -> Iterator[Snapshot]:
    with opened as topic:
        yield from follow(topic, snapshot_of, stop, newest_only=newest_only)
