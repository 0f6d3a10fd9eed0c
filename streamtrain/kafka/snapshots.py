"""Reads snapshots from their topic: the newest from the topic's end, one by version, all there are.

Nothing leaves here that is not whole: every chunk has the digest its manifest names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streamtrain.errors import KafkaUnreachable, SnapshotError, UserMistake
from streamtrain.kafka.admin import SETTLING, TIMEOUT_S, explain
from streamtrain.kafka.chunks import Chunks, Located, Stored
from streamtrain.kafka.consumer import flat_settings
from streamtrain.log import librdkafka_logger
from streamtrain.topics import snapshots
from streamtrain.topics._topic import sha256
from streamtrain.topics.snapshots import Kept, is_manifest, kept_after, manifest_key

_OWNED = {
    "group.id": "streamtrain-snapshots",  # librdkafka asks for one; it is never joined
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "check.crcs": "true",
}
_DEFAULTS = {
    "fetch.wait.max.ms": "10",  # the default of 500 is most of a follower's delay
    "fetch.error.backoff.ms": "50",
    "reconnect.backoff.max.ms": "1000",  # the default of 10,000 keeps it deaf long after a broker is back
    "fetch.message.max.bytes": str(8 * 1024 * 1024),
    "queued.max.messages.kbytes": "65536",
    "topic.metadata.refresh.interval.ms": "10000",
}
NO_TOPIC = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
_SETTLING_S = 0.05  # between two tries while a broker that has just started takes up its partitions
_FIRST_STEP = 4  # offsets looked at from the end: a commit marker, the manifest and little more
_STEP_GROWTH = 4
_WIDER_LOOKS = 2  # for chunks, when an aborted transaction of another producer lies between them


class Read(NamedTuple):
    """One message of the topic."""

    offset: int
    key: bytes | None
    value: bytes | None


class Held(NamedTuple):
    """What the topic holds before a new lineage begins; no snapshot in it has a version above `version`."""

    newest: Located | None = None
    kept: tuple[Kept, ...] = ()
    version: int = 0

    @classmethod
    def of(cls, newest: Located) -> Held:
        """Where nothing is damaged."""
        return cls(newest, kept_after(*newest), newest.manifest.version)

    def above(self, version: int) -> Held:
        """As it is, with no version that was given before at or below `version`."""
        return self._replace(version=max(self.version, version))


class SnapshotTopic:
    """The snapshots topic of one job. Opens one consumer that joins no group; one thread at a time.

    `on_error` hears what librdkafka reports beside its answers (all brokers down …) while poll() is called; without it
    that is logged. Raises KafkaUnreachable when no broker answers within 10 s, SnapshotError for a snapshot that is not
    whole.
    """

    def __init__(
        self,
        job: str,
        bootstrap: str,
        kafka: Mapping[str, object] | None = None,
        on_error: Callable[[KafkaError], None] | None = None,
    ) -> None:
        self.job = job
        self.bootstrap = bootstrap
        self.name = snapshots.TOPIC.name(job)
        settings: dict[str, Any] = {**_DEFAULTS, **flat_settings(kafka or {}), **_OWNED, "bootstrap.servers": bootstrap}
        if on_error is not None:
            settings["error_cb"] = on_error
        try:
            self._consumer = Consumer(settings, logger=librdkafka_logger())
        except KafkaException as error:
            raise UserMistake(f"[kafka] {error.args[0].str()}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._consumer.close()

    def answers(self, timeout_s: float) -> bool:
        """Whether a broker answers within that time."""
        try:
            self._consumer.list_topics(self.name, timeout=timeout_s)
        except KafkaException:
            return False
        return True

    def newest_manifest(self) -> Located | None:
        """The newest manifest, read from the topic's end; None where there is no snapshot or no topic yet."""
        low, end = self.bounds()
        step = _FIRST_STEP
        while end > low:
            begin = max(low, end - step)
            found = [read for read in self.window(begin, end) if is_manifest(read.key) and read.value is not None]
            if found:
                return self.located(found[-1])
            end, step = begin, step * _STEP_GROWTH
        return None

    def newest(self, trainer: bool = True) -> Stored | None:
        """The newest snapshot, whole; None where there is none yet.

        Raises SnapshotError when its manifest or a chunk is damaged, or when an older snapshot was written after a
        newer one: a start never falls back in silence. With `trainer` False only the model is fetched.
        """
        located = self.newest_manifest()
        return None if located is None else self.load(located, trainer)

    def list(self) -> list[Located]:
        """The manifests of every snapshot the topic holds, oldest first."""
        newest = self.newest_manifest()
        if newest is None:
            return []
        others = [self._at(entry) for entry in newest.manifest.kept]
        return sorted([*others, newest], key=lambda located: located.manifest.version)

    def version(self, version: int, trainer: bool = True) -> Stored:
        """The snapshot of that version; UserMistake names the ones there are."""
        newest = self.newest_manifest()
        if newest is not None:
            if newest.manifest.version == version:
                return self.load(newest, trainer)
            for entry in newest.manifest.kept:
                if entry.version == version:
                    return self.load(self._at(entry), trainer)
        versions = [] if newest is None else [newest.manifest.version, *(kept.version for kept in newest.manifest.kept)]
        held = ", ".join(map(str, sorted(versions))) or "none yet"
        raise UserMistake(f"{self.name}: expected a version it holds ({held}), got {version}")

    def salvage(self) -> Held:
        """What a new lineage finds where the newest snapshot is damaged; reads the whole topic.

        Damaged bytes do not tell their version, but every version took an offset of its own.
        """
        low, end = self.bounds()
        newest: Located | None = None
        written: set[bytes] = set()  # keys taken since `newest`, but for what follows the shelf
        for read in self.window(low, end):
            located = self._whole_manifest(read)
            if located is not None and (newest is None or located.manifest.version > newest.manifest.version):
                newest, written = located, set()
            elif read.key is not None:
                written.add(b"/".join(read.key.split(b"/")[:2]))
        if newest is None:
            return Held(version=end)
        try:
            self.load(newest, trainer=True)
            entries = kept_after(*newest)
        except SnapshotError:
            entries = newest.manifest.kept
        kept = tuple(entry for entry in entries if entry.shelf.encode() not in written)
        return Held(newest, kept, newest.manifest.version + end - newest.offset)

    def _whole_manifest(self, read: Read) -> Located | None:
        try:
            return self.located(read) if is_manifest(read.key) and read.value is not None else None
        except SnapshotError:
            return None

    def bounds(self) -> tuple[int, int]:
        """The first offset and the last stable one; (0, 0) where there is no topic."""
        until = time.monotonic() + TIMEOUT_S
        while True:
            try:
                bounds = self._consumer.get_watermark_offsets(TopicPartition(self.name, 0), timeout=TIMEOUT_S)
                break
            except KafkaException as error:
                if error.args[0].code() in NO_TOPIC:
                    return 0, 0
                if error.args[0].code() not in SETTLING or time.monotonic() > until:
                    raise explain(error.args[0], f"topic {self.name}", self.bootstrap) from None
                time.sleep(_SETTLING_S)
        if bounds is None:
            raise KafkaUnreachable(f"topic {self.name}: no answer from Kafka at {self.bootstrap} in {TIMEOUT_S} s")
        low, high = bounds
        return low, high

    def window(self, begin: int, end: int) -> Iterator[Read]:
        """The committed messages with begin <= offset < end, in order."""
        self.assign(begin)
        until = time.monotonic() + TIMEOUT_S
        while begin < end:
            read = self.poll(0.1)
            if isinstance(read, Read):
                if read.offset >= end:
                    return
                until = time.monotonic() + TIMEOUT_S
                yield read
                begin = read.offset + 1
            elif read is not None and read.code() == KafkaError._PARTITION_EOF:
                return
            elif time.monotonic() > until:
                raise KafkaUnreachable(
                    f"topic {self.name}: no message from Kafka at {self.bootstrap} in {TIMEOUT_S} s (from {begin})"
                )

    def assign(self, offset: int) -> None:
        self._consumer.assign([TopicPartition(self.name, 0, offset)])

    def poll(self, timeout_s: float) -> Read | KafkaError | None:
        message = self._consumer.poll(timeout_s)
        if message is None:
            return None
        failure = message.error()
        if failure is not None:
            return failure
        offset, key = message.offset(), message.key()
        assert offset is not None
        return Read(offset, key.encode() if isinstance(key, str) else key, message.value())

    def located(self, read: Read) -> Located:
        """Decodes a manifest and checks that it is of this job and under its own key."""
        assert read.value is not None
        where = f"{self.name}@{read.offset}"
        try:
            manifest = snapshots.decode(read.value)
        except SnapshotError as error:
            raise SnapshotError(f"{where}: {error}") from None
        if manifest.job != self.job or manifest_key(manifest.shelf) != read.key:
            raise SnapshotError(
                f"{where}: expected a manifest of job {self.job} under its own key {read.key!r}, "
                f"got job {manifest.job}, key {manifest_key(manifest.shelf)!r}"
            )
        return Located(manifest, sha256(read.value), read.offset)

    def _at(self, entry: Kept) -> Located:
        for read in self.window(entry.offset, entry.offset + 1):
            if read.value is not None and sha256(read.value) == entry.digest:
                return self.located(read)
        raise SnapshotError(
            f"{self.name}@{entry.offset}: expected the manifest of version {entry.version} with digest "
            f"{entry.digest.hex()[:12]}…, found none; it has been replaced since"
        )

    def load(self, located: Located, trainer: bool) -> Stored:
        """Fetches the chunks, which lie just before the manifest."""
        manifest = located.manifest
        gathered = Chunks(manifest, trainer)
        low, _ = self.bounds()
        end, reach = located.offset, manifest.chunk_count + _FIRST_STEP
        for _ in range(1 + _WIDER_LOOKS):
            begin = max(low, located.offset - reach)
            for read in self.window(begin, end):
                gathered.add(read.key, read.value)
                self._refuse_newer(read, located)
            if gathered.complete or begin == low:
                break
            end, reach = begin, reach * _STEP_GROWTH
        return gathered.stored(located, f"{self.name}@{located.offset}")

    def _refuse_newer(self, read: Read, located: Located) -> None:
        if is_manifest(read.key) and read.value is not None:
            try:
                before = snapshots.decode(read.value).version
            except SnapshotError:
                return  # damaged, but not the newest: nobody starts on it
            if before >= located.manifest.version:
                raise SnapshotError(
                    f"{self.name}@{located.offset}: expected a version above {before} at {read.offset}, "
                    f"got {located.manifest.version}"
                )
