"""A follower takes no second snapshot of a version it has: versions it sees rise, they do not stay."""

from __future__ import annotations

from typing import Any

from publisher import Publisher

from streamtrain.kafka.follower import Follower
from streamtrain.kafka.snapshots import SnapshotTopic
from streamtrain.topics.chunks import Stored


def test_an_equal_version_is_left_out(kafka: Any) -> None:
    job = kafka.fresh_name("equal")
    publisher = Publisher(kafka.bootstrap, job)
    publisher.put(1, b"first")
    rejected: list[str] = []
    with SnapshotTopic(job, kafka.bootstrap) as topic:
        follower = Follower(topic, lambda stored: stored, False, False, 0, rejected.append)
        seen: list[Stored] = list(follower.start())
        publisher.write(publisher.make(1, b"again").messages)
        publisher.put(2, b"second")
        while len(seen) < 2:
            seen += follower.poll(0.1)
    assert [(stored.manifest.version, stored.model) for stored in seen] == [(1, b"first"), (2, b"second")]
    assert len(rejected) == 1 and "expected a version above 1, got 1" in rejected[0]
