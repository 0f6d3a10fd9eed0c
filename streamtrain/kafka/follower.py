"""Follows a job's snapshots as they are published: good ones only, versions only going up."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

from streamtrain._native import KafkaCode
from streamtrain.errors import KafkaSettling, KafkaUnreachable, SnapshotError, StreamtrainError, UserMistake
from streamtrain.kafka.clients import Message
from streamtrain.kafka.error_codes import is_passing
from streamtrain.kafka.snapshot_reader import BEST, SnapshotTopic, Version
from streamtrain.topics.chunks import Chunks, Located, Stored
from streamtrain.topics.shelves import is_manifest, is_model_chunk

log = logging.getLogger("streamtrain.snapshots")

_BUFFER_BYTES = 512 * 1024 * 1024  # of chunks kept while their manifest has not come; beyond it they are read again
_PENDING_S = 0.5  # a follower of the newest gives what it has after this, however fast more comes
_AGAIN_S = 1.0  # after no answer, until a snapshot is asked for again
_POLL_S = 0.1
_LISTEN_S = 10.0  # of quiet, after which it is asked whether there is more

T = TypeVar("T")


def follow(
    topic: SnapshotTopic,
    prepare: Callable[[Stored], T],
    stop: Callable[[], bool] = lambda: False,
    trainer: bool = False,
    newest_only: bool = False,
    reject: Callable[[str], None] = log.warning,
    version: Version | None = None,
) -> Iterator[T]:
    """Yields the result of `prepare` for the newest snapshot, then for each new one; versions only go up.

    `version`: a number gives that snapshot alone; "best" gives the best one, then each that the newest manifest names
    in its place, which may be an older one. Raises UserMistake if the topic does not hold it.

    Drops a snapshot that is not whole or not newer, or at which `prepare` raises, and passes the reason to `reject`.
    Its version does not count. `newest_only` skips snapshots that are outdated when their turn comes. Waits for the
    topic, and through a loss of the brokers; ends when `stop()` is true.
    """
    if version is not None:
        found = topic.named(version)
        if version != BEST:
            yield prepare(topic.load(found, trainer))
            return
    follower = Follower(topic, prepare, trainer, newest_only, 0, reject, version == BEST)
    settled = False
    while not (settled or stop()):
        try:
            yield from follower.start()
            settled = True
        except KafkaSettling as error:  # nobody leads the topic yet
            log.debug("%s", error)
            time.sleep(_POLL_S)
    while not stop():
        yield from follower.poll(_POLL_S)


class _Waiting(NamedTuple):
    """A snapshot that has come and its chunks at hand; what is missing of them is fetched."""

    located: Located
    chunks: dict[bytes, bytes]

    @property
    def version(self) -> int:
        return self.located.manifest.version


class Follower(Generic[T]):
    """The state of `follow`: the last version given, chunks whose manifest has not arrived, the waiting snapshots.

    `best`: gives, instead of each snapshot, the one that its manifest names as the best. Gives nothing if that is the
    last one given.
    """

    def __init__(
        self,
        topic: SnapshotTopic,
        prepare: Callable[[Stored], T],
        trainer: bool,
        newest_only: bool,
        after: int,
        reject: Callable[[str], None],
        best: bool = False,
    ) -> None:
        self._topic = topic
        self._prepare = prepare
        self._trainer = trainer
        self._newest_only = newest_only
        self._best = best
        self._given = after  # the best one's version, where that is followed
        self._version = 0 if best else after
        self._reject = reject
        self._chunks: dict[bytes, bytes] = {}
        self._chunk_bytes = 0
        self._waiting: list[_Waiting] = []  # in the order they came
        self._waiting_since_s = 0.0
        self._again_s = 0.0  # when what could not be fetched is asked for again
        self._next = 0
        self._heard_s = time.monotonic()
        self._unread = 0  # where the topic ended at the last look, if that was beyond `_next`
        self._renewals = 0

    def start(self) -> Iterator[T]:
        """The newest snapshot of the topic; what comes after it is what `poll` reads."""
        located = None
        try:
            located = self._topic.newest_manifest()
            if located is not None:
                self._next = located.offset + 1
                if located.manifest.version > self._version:
                    items = self._newest(located)
                    self._version = located.manifest.version
                    yield from items
        except SnapshotError as error:
            self._refuse(error)
            if located is None:
                self._next = self._topic.bounds()[1]
        self._assign()

    def _newest(self, located: Located) -> list[T]:
        """SnapshotError where one of no lower version lies before it, if that is good itself."""
        if self._best:
            return self._best_by(located)
        newer: list[Located] = []
        item = self._prepare_item(self._topic.load(located, self._trainer, newer))
        for other in newer:
            try:
                self._prepare_item(self._topic.load(other, self._trainer, []))
            except SnapshotError as error:
                log.debug("%s", error)
            else:
                raise self._topic.out_of_order(other, located)
        return [item]

    def _best_by(self, newest: Located) -> list[T]:
        """The best one as `newest` names it, where that is not the one given last."""
        if newest.manifest.best in (None, self._given):
            return []
        try:
            found = self._topic.named_by(newest, BEST)
        except UserMistake as error:
            raise SnapshotError(str(error)) from None
        item = self._prepare_item(self._topic.load(found, self._trainer, []))
        self._given = found.manifest.version
        return [item]

    def _assign(self) -> None:
        self._renewals = self._topic.renewals
        self._topic.assign(self._next)

    def poll(self, timeout_s: float) -> Iterator[T]:
        """Yields what one message from the broker completes; nothing for most messages."""
        rest_s = max(0.0, self._again_s - time.monotonic()) if self._waiting else timeout_s
        message = self._topic.poll(min(timeout_s, rest_s))
        self._hear(message, timeout_s)
        if self._due(quiet=message is None or message.error != 0):
            yield from self._give()

    def _due(self, quiet: bool) -> bool:
        """Returns whether to give the waiting snapshots now.

        Usually at once; with `newest_only` when no more messages come, or after _PENDING_S.
        """
        now_s = time.monotonic()
        late = now_s - self._waiting_since_s > _PENDING_S
        return bool(self._waiting) and now_s >= self._again_s and (quiet or late or not self._newest_only)

    def _hear(self, message: Message | None, timeout_s: float) -> None:
        """Handles what a poll returned."""
        if message is None:
            self._listen()
            return
        if message.error not in (0, KafkaCode.PARTITION_EOF):
            level = logging.DEBUG if is_passing(message.error) else logging.WARNING
            log.log(level, "%s: %s", self._topic.name, message.error_text)
            time.sleep(timeout_s)
            return
        self._heard_s, self._unread = time.monotonic(), 0
        if message.error:
            self._next = max(self._next, message.offset)
            return
        self._next = message.offset + 1
        if not is_manifest(message.key):
            self._keep(message)
        elif message.value is not None:
            self._take(message)

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
            self._assign()  # what explained the error may have taken a message
        if end > self._next and self._unread:
            self._topic.renew()
        self._unread = end if end > self._next else 0
        if self._topic.renewals != self._renewals:
            log.warning("%s: reading on with a new client", self._topic.name)
            self._assign()

    def _keep(self, chunk: Message) -> None:
        """Chunks wait for their manifest, the trainer's only if they are asked for; too many are read again later."""
        is_needed = chunk.key is not None and (self._trainer or is_model_chunk(chunk.key))
        if not is_needed or chunk.key is None or chunk.value is None or self._chunk_bytes > _BUFFER_BYTES:
            return
        self._chunks[chunk.key] = chunk.value
        self._chunk_bytes += len(chunk.value)

    def _take(self, message: Message) -> None:
        """A manifest has come: what was gathered belongs to it."""
        chunks, self._chunks, self._chunk_bytes = self._chunks, {}, 0
        try:
            located = self._topic.located(message)
        except SnapshotError as error:
            self._refuse(error)
            return
        if not self._waiting:
            self._waiting_since_s = time.monotonic()
        for former in self._waiting:  # likely outdated: read again if this one is no good
            former.chunks.clear()
        self._waiting.append(_Waiting(located, chunks))

    def _give(self) -> Iterator[T]:
        """Only what is good counts: a version that is refused neither passes over another nor is one to be above of."""
        while self._waiting:
            at = self._first()
            waiting = self._waiting[at]
            try:
                items = self._fetched(waiting)
            except KafkaUnreachable as error:  # nothing is wrong with the snapshot: it is asked for again
                log.debug("%s", error)
                waiting.chunks.clear()
                self._again_s = time.monotonic() + _AGAIN_S
                return
            except SnapshotError as error:
                del self._waiting[at]
                self._refuse(error)
                continue
            del self._waiting[: at + 1]
            self._version = waiting.version
            yield from items

    def _first(self) -> int:
        """Which of those that wait has its turn: the one that came first, or the newest."""
        if not self._newest_only:
            return 0
        return max(range(len(self._waiting)), key=lambda at: self._waiting[at].version)

    def _fetched(self, waiting: _Waiting) -> list[T]:
        """Returns what to give now that this snapshot has arrived; an empty list if the best one is unchanged."""
        located = waiting.located
        where = f"{self._topic.name}@{located.offset}"
        if waiting.version <= self._version:
            raise SnapshotError(f"{where}: expected a version above {self._version}, got {waiting.version}")
        gathered = Chunks(located.manifest, self._trainer)
        for key, value in waiting.chunks.items():
            gathered.add(key, value)
        if gathered.complete and not self._best:
            return [self._prepare_item(gathered.stored(located, where))]
        try:
            return (
                self._best_by(located)
                if self._best
                else [self._prepare_item(self._topic.load(located, self._trainer, []))]
            )
        finally:
            self._assign()

    def _prepare_item(self, stored: Stored) -> T:
        try:
            return self._prepare(stored)
        except Exception as error:  # of what is malformed nobody knows how it fails
            text = str(error) if isinstance(error, StreamtrainError) else f"{stored.manifest.version}: {error!r}"
            raise SnapshotError(text) from error

    def _refuse(self, error: SnapshotError) -> None:
        current = self._given if self._best else self._version
        kept = f"keeping snapshot {current}" if current else "waiting for the next snapshot"
        self._reject(f"{error}; {kept}")
