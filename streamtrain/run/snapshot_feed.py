"""The snapshots of a job as a host sees them: each whole, one after the other, read in a thread of its own."""

from __future__ import annotations

import time
from queue import Empty, SimpleQueue
from typing import NamedTuple

from streamtrain.closing import Closing
from streamtrain.errors import KafkaBroken, KafkaUnreachable
from streamtrain.kafka.following import Following
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.log import get_logger
from streamtrain.topics.chunks import Stored

log = get_logger(__name__)


class Seen(NamedTuple):
    """A snapshot, and when it was seen: monotonic seconds."""

    stored: Stored
    at_s: float


class SnapshotFeed(Following[Seen], Closing):
    """Begins with the newest."""

    def __init__(self, topic: SnapshotTopic) -> None:
        super().__init__(topic, "snapshots", whole=True)
        self._seen: SimpleQueue[Seen] = SimpleQueue()
        self._error: Exception | None = None
        self._thread.start()

    def next(self, timeout_s: float = 0.0) -> Seen | None:
        """The next one seen; None where there is none. Raises what has ended the reading."""
        if self._error is not None:
            raise self._error
        try:
            return self._seen.get(timeout_s > 0, timeout_s or None)
        except Empty:
            return None

    def close(self) -> None:
        self._end()

    def _prepared(self, stored: Stored) -> Seen:
        return Seen(stored, time.monotonic())

    def _take(self, item: Seen) -> None:
        self._seen.put(item)

    def _failed(self, error: Exception) -> bool:
        if isinstance(error, KafkaUnreachable | KafkaBroken):
            log.debug("snapshots cannot be read", reason=str(error))
            return True
        self._error = error
        return False

    def _refused(self, text: str) -> None:
        log.warning(text)
