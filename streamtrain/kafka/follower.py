"""Follows a job's snapshots as they are published: whole ones only, versions only going up."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator

from streamtrain.errors import KafkaSettling, KafkaUnreachable, SnapshotError
from streamtrain.kafka.chunks import Chunks, Located, Stored
from streamtrain.kafka.errors import is_passing
from streamtrain.kafka.snapshots import End, Read, SnapshotTopic
from streamtrain.topics.snapshots import is_manifest, is_model_chunk

log = logging.getLogger("streamtrain.snapshots")

_BUFFER_BYTES = 512 * 1024 * 1024  # of chunks kept while their manifest has not come; beyond it they are read again
_PENDING_S = 0.5  # a follower of the newest gives what it has after this, however fast more comes
_AGAIN_S = 1.0  # after no answer, until a snapshot is asked for again
_LISTEN_S = 10.0  # of quiet, after which it is asked whether there is more


def follow(
    topic: SnapshotTopic,
    stop: Callable[[], bool] = lambda: False,
    trainer: bool = False,
    newest_only: bool = False,
    after: int = 0,
    reject: Callable[[str], None] = log.warning,
    poll_s: float = 0.1,
) -> Iterator[Stored]:
    """The newest snapshot, then each new one as it comes; versions only go up, from above `after`.

    What is not whole or not newer is left out, and `reject` is told why. `newest_only` passes over snapshots that
    are outdated when their turn comes. Waits for the topic, and through a loss of the brokers; ends when `stop()`.
    """
    follower = Follower(topic, trainer, newest_only, after, reject)
    settled = False
    while not (settled or stop()):
        try:
            yield from follower.start()
            settled = True
        except KafkaSettling as error:  # nobody leads the topic yet
            log.debug("%s", error)
            time.sleep(poll_s)
    while not stop():
        yield from follower.poll(poll_s)


class Follower:
    """What `follow` remembers: the version given last, chunks whose manifest has not come, the pending snapshot."""

    def __init__(
        self, topic: SnapshotTopic, trainer: bool, newest_only: bool, after: int, reject: Callable[[str], None]
    ) -> None:
        self._topic = topic
        self._trainer = trainer
        self._newest_only = newest_only
        self._version = after
        self._reject = reject
        self._chunks: dict[bytes, bytes] = {}
        self._chunk_bytes = 0
        self._pending: tuple[Located, dict[bytes, bytes]] | None = None
        self._pending_since = 0.0
        self._not_before_s = 0.0  # is the pending one asked for again
        self._next = 0
        self._heard_s = time.monotonic()
        self._unread = 0  # where the topic ended at the last look, if that was beyond `_next`
        self._renewals = 0

    def start(self) -> Iterator[Stored]:
        """The newest snapshot of the topic; what comes after it is what `poll` reads."""
        located = None
        try:
            located = self._topic.newest_manifest()
            if located is not None:
                self._next = located.offset + 1
                if located.manifest.version > self._version:
                    stored = self._topic.load(located, self._trainer)
                    self._version = located.manifest.version
                    yield stored
        except SnapshotError as error:
            self._reject(f"{error}; waiting for the next snapshot")
            if located is None:
                self._next = self._topic.bounds()[1]
        self._assign()

    def _assign(self) -> None:
        self._renewals = self._topic.renewals
        self._topic.assign(self._next)

    def poll(self, timeout_s: float) -> Iterator[Stored]:
        """What one message from the broker completes; nothing for most."""
        waited = self._pending is None or time.monotonic() < self._not_before_s
        read = self._topic.poll(timeout_s if waited else 0)
        if isinstance(read, Read | End):
            self._heard_s, self._unread = time.monotonic(), 0
        if isinstance(read, End):
            self._next = max(self._next, read.offset)
        elif isinstance(read, Read):
            self._next = read.offset + 1
            if not is_manifest(read.key):
                self._keep(read)
            elif read.value is not None:
                self._take(read)
        elif read is not None:
            log.log(logging.DEBUG if is_passing(read.code()) else logging.WARNING, "%s: %s", self._topic.name, read)
            time.sleep(timeout_s)
        else:
            self._listen()
        quiet = not isinstance(read, Read)
        late = time.monotonic() - self._pending_since > _PENDING_S
        held = self._pending is None or time.monotonic() < self._not_before_s
        if not held and (not self._newest_only or quiet or late):
            yield from self._give()

    def _listen(self) -> None:
        """A consumer that is quiet while there is more for it, at two looks, has gone deaf: it is made anew."""
        if time.monotonic() - self._heard_s < _LISTEN_S:
            return
        self._heard_s = time.monotonic()
        try:
            end = self._topic.bounds()[1]
        except KafkaUnreachable as error:
            log.debug("%s", error)
            end = 0
        if end > self._next and self._unread:
            self._topic.renew()
        self._unread = end if end > self._next else 0
        if self._topic.renewals != self._renewals:
            log.warning("%s: reading on with a new client", self._topic.name)
            self._assign()

    def _keep(self, read: Read) -> None:
        """Chunks wait for their manifest, the trainer's only if they are asked for; too many are read again later."""
        wanted = read.key is not None and (self._trainer or is_model_chunk(read.key))
        if not wanted or read.key is None or read.value is None or self._chunk_bytes > _BUFFER_BYTES:
            return
        self._chunks[read.key] = read.value
        self._chunk_bytes += len(read.value)

    def _take(self, read: Read) -> None:
        """A manifest has come: what was gathered belongs to it."""
        chunks, self._chunks, self._chunk_bytes = self._chunks, {}, 0
        try:
            located = self._topic.located(read)
        except SnapshotError as error:
            self._reject(f"{error}; keeping snapshot {self._version}")
            return
        newest = self._version if self._pending is None else self._pending[0].manifest.version
        if located.manifest.version <= newest:
            self._reject(
                f"{self._topic.name}@{located.offset}: expected a version above {newest}, "
                f"got {located.manifest.version}; keeping snapshot {newest}"
            )
            return
        if self._pending is None:
            self._pending_since = time.monotonic()
        self._pending = (located, chunks)

    def _give(self) -> Iterator[Stored]:
        assert self._pending is not None
        (located, chunks), self._pending = self._pending, None
        gathered = Chunks(located.manifest, self._trainer)
        for key, value in chunks.items():
            gathered.add(key, value)
        try:
            if gathered.complete:
                stored = gathered.stored(located, f"{self._topic.name}@{located.offset}")
            else:
                try:
                    stored = self._topic.load(located, self._trainer)
                finally:
                    self._assign()
        except KafkaUnreachable as error:  # nothing is wrong with the snapshot: it is asked for again
            log.debug("%s", error)
            self._pending, self._pending_since = (located, {}), time.monotonic()
            self._not_before_s = self._pending_since + _AGAIN_S
            return
        except SnapshotError as error:
            self._reject(f"{error}; keeping snapshot {self._version}")
            return
        self._version = located.manifest.version
        yield stored
