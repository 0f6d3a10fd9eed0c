"""Reads snapshots from their topic: the newest from the topic's end, one by version, all there are.

Nothing leaves here that is not whole: every chunk has the digest its manifest names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, MutableSequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streamtrain.errors import KafkaSettling, KafkaUnreachable, SnapshotError, StreamtrainError, UserMistake
from streamtrain.kafka.admin import SETTLING_S, TIMEOUT_S, Admin
from streamtrain.kafka.chunks import Chunks, Located, Stored
from streamtrain.kafka.consumer import flat_settings
from streamtrain.kafka.errors import Heard, Response, explain, is_passing, response_to
from streamtrain.kafka.renewing import Renewing
from streamtrain.log import librdkafka_logger
from streamtrain.topics import snapshots
from streamtrain.topics.manifest import Kept
from streamtrain.topics.manifest import decode as decode_manifest
from streamtrain.topics.shelves import is_manifest, kept_after, manifest_key
from streamtrain.topics.topic import sha256

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
_FIRST_STEP = 4  # offsets looked at from the end: a commit marker, the manifest and little more
_STEP_GROWTH = 4
_WIDER_LOOKS = 2  # for chunks, when an aborted transaction of another producer lies between them


class Read(NamedTuple):
    """One message of the topic."""

    offset: int
    key: bytes | None
    value: bytes | None


class End(NamedTuple):
    """All that is committed now has been read; `offset` comes next."""

    offset: int


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
        self._kafka = flat_settings(kafka or {})
        self._heard = Heard(on_error)
        owned = {**_OWNED, "bootstrap.servers": bootstrap, "error_cb": self._heard}
        self._settings: dict[str, Any] = {**_DEFAULTS, **self._kafka, **owned}
        self._clients = Renewing(self._open)

    def _open(self) -> Consumer:
        try:
            return Consumer(self._settings, logger=librdkafka_logger())
        except KafkaException as error:
            raise UserMistake(f"[kafka] {error.args[0].str()}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._clients.close()

    def answers(self, timeout_s: float) -> bool:
        """Whether a broker answers within that time."""
        try:
            self._clients.client.list_topics(self.name, timeout=timeout_s)
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
        """The first offset and the last stable one; (0, 0) where the controller says that there is no topic.

        Raises KafkaUnreachable where Kafka does not say, KafkaDenied where this user is not let in.
        """
        until, controller = time.monotonic() + TIMEOUT_S, None
        while True:
            try:
                bounds = self._clients.ask(self._bounds)
                self._heard.clear()
                return bounds
            except KafkaSettling:
                controller = controller or Admin(self.bootstrap, self._kafka)
                if controller.absent(self.name):
                    return 0, 0
                if time.monotonic() > until:
                    raise
                time.sleep(SETTLING_S)

    def _bounds(self, consumer: Consumer) -> tuple[int, int]:
        try:
            bounds = consumer.get_watermark_offsets(TopicPartition(self.name, 0), timeout=TIMEOUT_S)
        except KafkaException as error:
            missing = response_to(error.args[0].code()) is Response.MISSING
            raise self._explained(consumer, (missing and self._hidden(consumer)) or error.args[0]) from None
        if bounds is None:
            raise self._explained(consumer, KafkaError(KafkaError._TIMED_OUT))
        return bounds[0], bounds[1]

    def _hidden(self, consumer: Consumer) -> KafkaError | None:
        """Why this user sees no such topic, if its rights are the reason: offsets are then only said to be unknown."""
        try:
            error = consumer.list_topics(self.name, timeout=TIMEOUT_S).topics[self.name].error
        except KafkaException:
            return None
        return error if error is not None and response_to(error.code()) is Response.DENIED else None

    def _explained(self, consumer: Consumer, error: KafkaError) -> StreamtrainError:
        consumer.poll(0)  # hears what came beside the answers; whoever reads on assigns again
        return explain(error, f"topic {self.name}", self.bootstrap, self._heard)

    def window(self, begin: int, end: int) -> Iterator[Read]:
        """The committed messages with begin <= offset < end, in order; KafkaUnreachable where it is cut short."""
        self.assign(begin)
        until = time.monotonic() + TIMEOUT_S
        while begin < end:
            read = self.poll(0.1)
            if isinstance(read, End):
                if read.offset >= end:
                    return
            elif isinstance(read, Read):
                if read.offset >= end:
                    return
                until = time.monotonic() + TIMEOUT_S
                yield read
                begin = read.offset + 1
            elif read is not None and not is_passing(read.code()):
                raise self._explained(self._clients.client, read)
            if time.monotonic() > until:
                self._clients.renew()  # it answered bounds(), and reads nothing
                raise KafkaUnreachable(
                    f"topic {self.name}: expected its messages from {begin} to {end} from Kafka at {self.bootstrap}, "
                    f"got none in {TIMEOUT_S} s"
                )

    def assign(self, offset: int) -> None:
        self._clients.client.assign([TopicPartition(self.name, 0, offset)])

    @property
    def renewals(self) -> int:
        """Grows when the consumer was made anew: it has to be assigned again."""
        return self._clients.made

    def renew(self) -> None:
        """Leaves a consumer behind that reads no more."""
        self._clients.renew()

    def poll(self, timeout_s: float) -> Read | End | KafkaError | None:
        message = self._clients.client.poll(timeout_s)
        if message is None:
            return None
        failure, offset = message.error(), message.offset()
        if failure is not None:
            if failure.code() != KafkaError._PARTITION_EOF or offset is None:
                return failure
            self._heard.clear()
            return End(offset)
        self._heard.clear()
        key = message.key()
        assert offset is not None
        return Read(offset, key.encode() if isinstance(key, str) else key, message.value())

    def located(self, read: Read) -> Located:
        """Decodes a manifest and checks that it is of this job and under its own key."""
        assert read.value is not None
        where = f"{self.name}@{read.offset}"
        try:
            manifest = decode_manifest(read.value)
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

    def load(self, located: Located, trainer: bool, newer: MutableSequence[Located] | None = None) -> Stored:
        """Fetches the chunks, which lie just before the manifest.

        A manifest of no lower version among them is an error, or is put into `newer`.
        """
        manifest = located.manifest
        gathered = Chunks(manifest, trainer)
        low, _ = self.bounds()
        end, reach = located.offset, manifest.chunk_count + _FIRST_STEP
        for _ in range(1 + _WIDER_LOOKS):
            begin = max(low, located.offset - reach)
            for read in self.window(begin, end):
                gathered.add(read.key, read.value)
                other = self._whole_manifest(read)  # a damaged one is not the newest: nobody starts on it
                if other is None or other.manifest.version < manifest.version:
                    continue
                if newer is None:
                    raise self.out_of_order(other, located)
                newer.append(other)
            if gathered.complete or begin == low:
                break
            end, reach = begin, reach * _STEP_GROWTH
        return gathered.stored(located, f"{self.name}@{located.offset}")

    def out_of_order(self, before: Located, after: Located) -> SnapshotError:
        """Versions go up, but not from `before` to `after`."""
        return SnapshotError(
            f"{self.name}@{after.offset}: expected a version above {before.manifest.version} at {before.offset}, "
            f"got {after.manifest.version}"
        )
