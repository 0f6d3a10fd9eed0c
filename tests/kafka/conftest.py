"""A job's snapshots topic on the tests' Kafka: who writes it, who reads it, who follows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from publisher import Publisher
from waiting import wait_for

from streamtrain.kafka.follower import Follower
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.topics.chunks import Stored


@pytest.fixture
def job(kafka: Any) -> str:
    return str(kafka.fresh_name("job"))


@pytest.fixture
def publisher(kafka: Any, job: str) -> Publisher:
    return Publisher(kafka.bootstrap, job)


@pytest.fixture
def topic(kafka: Any, job: str) -> Iterator[SnapshotTopic]:
    with SnapshotTopic(job, kafka.bootstrap) as opened:
        yield opened


class Following:
    """A follower with the snapshots it gave and its reasons for those it refused."""

    def __init__(
        self,
        topic: SnapshotTopic,
        newest_only: bool = False,
        trainer: bool = False,
        prepare: Callable[[Stored], Stored] = lambda stored: stored,
    ) -> None:
        self.rejected: list[str] = []
        self.follower = Follower(topic, prepare, trainer, newest_only, 0, self.rejected.append)
        self.seen = list(self.follower.start())

    @property
    def versions(self) -> list[int]:
        return [stored.manifest.version for stored in self.seen]

    def until(self, condition: Callable[[], bool]) -> None:
        """Follows until it is true."""
        wait_for(lambda: self.seen.extend(self.follower.poll(0.05)) or condition())


def failing(patch: pytest.MonkeyPatch, owner: Any, name: str, *errors: Exception) -> list[Exception]:
    """Lets calls of a method raise these first, and those that are added to the list later."""
    real, failures = getattr(owner, name), [*errors]

    def method(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return real(*arguments)

    patch.setattr(owner, name, method)
    return failures
