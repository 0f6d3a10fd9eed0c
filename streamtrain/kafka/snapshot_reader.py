"""Reads snapshots from their topic: the newest from the topic's end, one by version, all there are.

Nothing leaves here that is not whole: every chunk has the digest its manifest names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, MutableSequence
from contextlib import suppress
from typing import Literal

from streamtrain import _native
from streamtrain._native import KafkaCode, KafkaResponse
from streamtrain.closing import Closing
from streamtrain.errors import KafkaBroken, KafkaSettling, KafkaUnreachable, SnapshotError, UserMistake
from streamtrain.kafka.admin import SETTLING_S, TIMEOUT_S, Admin
from streamtrain.kafka.clients import KafkaConsumer, Message
from streamtrain.kafka.control import take_back
from streamtrain.kafka.error_codes import response_to
from streamtrain.kafka.reader import read
from streamtrain.kafka.renewing import Renewing
from streamtrain.kafka.settings import Purpose
from streamtrain.topics import snapshots
from streamtrain.topics.chunks import Chunks, Located, Stored, TopicContents
from streamtrain.topics.control import LEAP
from streamtrain.topics.manifest import Kept
from streamtrain.topics.manifest import decode as decode_manifest
from streamtrain.topics.shelves import is_manifest, kept_after, manifest_key
from streamtrain.topics.topic import sha256

BEST: Literal["best"] = "best"
Version = int | Literal["best"]  # one by its number, or the best one by early stopping as the newest manifest names it

_GROUP = "streamtrain-snapshots"  # librdkafka asks for one; it is never joined
_FIRST_STEP = 4  # offsets looked at from the end: a commit marker, the manifest and little more
_STEP_GROWTH = 4
_AT_ONCE = 16  # messages: chunks are large
_WIDER_LOOKS = 2  # for chunks, when an aborted transaction of another producer lies between them


class SnapshotTopic(Closing):
    """The snapshots topic of one job. Opens one consumer that joins no group, unless `clients` has one; one thread at
    a time.

    `on_error` hears what librdkafka reports beside its answers (all brokers down …), as code and text, while poll() is
    called; without it that is logged. Raises KafkaUnreachable when no broker answers within 10 s, SnapshotError for a
    snapshot that is not whole.
    """

    def __init__(
        self,
        job: str,
        bootstrap: str,
        kafka: Mapping[str, object] | None = None,
        on_error: Callable[[int, str], None] | None = None,
        purpose: Purpose = Purpose.FOLLOW,
        clients: Renewing[KafkaConsumer] | None = None,
    ) -> None:
        self.job = job
        self.bootstrap = bootstrap
        self.name = snapshots.TOPIC.name(job)
        self._kafka = {**(kafka or {}), "bootstrap.servers": bootstrap}
        self._on_error = on_error
        self._clients = clients or Renewing(lambda: KafkaConsumer.open(purpose, self._kafka, _GROUP))

    def close(self) -> None:
        self._clients.close()

    def answers(self, timeout_s: float) -> bool:
        """Returns whether a broker answers within that time."""
        try:
            self._clients.client.native.partition_count(self.name, int(timeout_s * 1000))
        except _native.KafkaFailure as failure:
            return response_to(failure.args[0]) is KafkaResponse.MISSING
        return True

    def newest_manifest(self) -> Located | None:
        """The newest manifest that was not taken back, read from the topic's end; None where there is no snapshot or
        no topic yet."""
        low, end = self.bounds()
        step = _FIRST_STEP
        gone: set[bytes | None] = set()  # by a tombstone that comes later
        while end > low:
            begin = max(low, end - step)
            for one in reversed([one for one in self.window(begin, end) if is_manifest(one.key)]):
                if one.value is None:
                    gone.add(one.key)
                elif one.key not in gone:
                    return self.located(one)
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
        return self.load(self.named(version), trainer)

    def named(self, version: Version) -> Located:
        """The manifest of that version, or of the best; UserMistake where the topic does not hold it."""
        return self.named_by(self.newest_manifest(), version)

    def named_by(self, newest: Located | None, version: Version) -> Located:
        """Finds a snapshot as named(), where `newest` is the newest manifest."""
        target = version if version != BEST else None if newest is None else newest.manifest.best
        if newest is not None and newest.manifest.version == target:
            return newest
        kept = () if newest is None else kept_after(*newest)
        if (entry := next((entry for entry in kept if entry.version == target), None)) is not None:
            return self._at(entry)
        if version == BEST:
            what = "none yet" if target is None else f"snapshot {target}, which it no longer holds"
            expected = f"a snapshot that is the best by train.early_stopping, found {what}; name a version"
        else:
            versions = ", ".join(map(str, sorted(entry.version for entry in kept))) or "none yet"
            expected = f"a version it holds ({versions}), got {version}"
        raise UserMistake(f"{self.name}: expected {expected}")

    def manifest_of(self, version: int) -> Located | None:
        """The manifest of that version, without its chunks; None where the topic does not hold it."""
        newest = self.newest_manifest()
        if newest is None or newest.manifest.version == version:
            return newest
        return next((self._at(entry) for entry in newest.manifest.kept if entry.version == version), None)

    def salvage(self) -> TopicContents:
        """Returns what a new lineage can keep if the newest snapshot is damaged; reads the whole topic.

        Damaged bytes do not show their version, but every version took an offset of its own.
        """
        low, end = self.bounds()
        newest: Located | None = None
        written: set[bytes] = set()  # keys taken since `newest`, but for what follows the shelf
        for one in self.window(low, end):
            located = self._whole_manifest(one)
            if located is not None and (newest is None or located.manifest.version > newest.manifest.version):
                newest, written = located, set()
            elif one.key is not None:
                written.add(b"/".join(one.key.split(b"/")[:2]))
        if newest is None:
            return TopicContents(version=end)
        try:
            self.load(newest, trainer=True)
            entries = kept_after(*newest)
        except SnapshotError:
            entries = newest.manifest.kept
        kept = tuple(entry for entry in entries if entry.shelf.encode() not in written)
        return TopicContents(newest, kept, newest.manifest.version + end - newest.offset)

    def _whole_manifest(self, message: Message) -> Located | None:
        try:
            return self.located(message) if is_manifest(message.key) and message.value is not None else None
        except SnapshotError:
            return None

    def bounds(self) -> tuple[int, int]:
        """The first offset and the last stable one; (0, 0) where the controller says that there is no topic.

        Raises KafkaUnreachable where Kafka does not say, KafkaDenied where this user is not let in.
        """
        until, controller = time.monotonic() + TIMEOUT_S, None
        while True:
            try:
                return self._clients.ask(self._bounds)
            except KafkaSettling:
                controller = controller or Admin(self.bootstrap, self._kafka)
                if controller.absent(self.name):
                    return 0, 0
                if time.monotonic() > until:
                    raise
                time.sleep(SETTLING_S)

    def _bounds(self, consumer: KafkaConsumer) -> tuple[int, int]:
        try:
            return consumer.bounds(self.name, 0, TIMEOUT_S)
        except KafkaSettling:  # offsets of a topic that this user may not see are only said to be unknown
            with suppress(KafkaUnreachable, KafkaBroken):
                consumer.partition_count(self.name, TIMEOUT_S)
            raise

    def window(self, begin: int, end: int) -> Iterator[Message]:
        """The committed messages with begin <= offset < end, in order; KafkaUnreachable where it is cut short."""
        try:
            yield from read(self._clients.client, self.name, 0, begin, end, _AT_ONCE)
        except KafkaUnreachable:
            self._clients.renew()  # it answered bounds(), and reads nothing
            raise

    def assign(self, offset: int) -> None:
        self._clients.client.assign(self.name, [(0, offset)])

    @property
    def renewals(self) -> int:
        """Grows when the consumer was made anew: it has to be assigned again."""
        return self._clients.client_count

    def renew(self) -> None:
        """Leaves a consumer behind that reads no more."""
        self._clients.renew()

    def poll(self, timeout_s: float) -> Message | None:
        """The next message since `assign`, or the end of what is committed now (PARTITION_EOF), or an error."""
        consumer = self._clients.client
        found = consumer.consume(1, timeout_s)
        for event in consumer.events():
            if event.code and self._on_error is not None:
                self._on_error(event.code, event.text)
            else:
                event.log()
        if found and found[0].error in (0, KafkaCode.PARTITION_EOF):
            consumer.heard.clear()
        return found[0] if found else None

    def located(self, message: Message) -> Located:
        """Decodes a manifest and checks that it is of this job and under its own key."""
        assert message.value is not None
        where = f"{self.name}@{message.offset}"
        try:
            manifest = decode_manifest(message.value)
        except SnapshotError as error:
            raise SnapshotError(f"{where}: {error}") from None
        if manifest.job != self.job or manifest_key(manifest.shelf) != message.key:
            raise SnapshotError(
                f"{where}: expected a manifest of job {self.job} under its own key {message.key!r}, "
                f"got job {manifest.job}, key {manifest_key(manifest.shelf)!r}"
            )
        kept, imported = (entry.version for entry in manifest.kept), (entry.version for entry in manifest.imported)
        known = [message.offset, *kept, *imported]
        if manifest.version - max(known) > LEAP or manifest.run.number > LEAP:
            raise SnapshotError(
                f"{where}: key {message.key!r}: expected a version and a run that a trainer has counted up to, got "
                f"version {manifest.version}, run {manifest.run.number}; another program wrote it; "
                f"{take_back(self.bootstrap, self.name, message.key)}"
            )
        return Located(manifest, sha256(message.value), message.offset)

    def _at(self, entry: Kept) -> Located:
        for one in self.window(entry.offset, entry.offset + 1):
            if one.value is not None and sha256(one.value) == entry.digest:
                return self.located(one)
        raise SnapshotError(
            f"{self.name}@{entry.offset}: expected the manifest of version {entry.version} with digest "
            f"{entry.digest.hex()[:12]}…, found none; it has been replaced since"
        )

    def load(self, located: Located, trainer: bool, newer: MutableSequence[Located] | None = None) -> Stored:
        """Fetches the chunks, which lie just before the manifest.

        A manifest of no lower version among them is an error, or is put into `newer`.
        """
        gathered = Chunks(located.manifest, trainer)
        self._gather(located, gathered, newer)
        return gathered.stored(located, f"{self.name}@{located.offset}")

    def hand_on(self, located: Located, put: Callable[[int, bytes], None]) -> None:
        """Loads as `load`, one chunk at a time. Each chunk that matches its manifest goes to `put`, with its place."""
        gathered = Chunks(located.manifest, trainer=True, put=put)
        self._gather(located, gathered, None)
        gathered.check_whole(located, f"{self.name}@{located.offset}")

    def _gather(self, located: Located, gathered: Chunks, newer: MutableSequence[Located] | None) -> None:
        manifest = located.manifest
        low, _ = self.bounds()
        end, reach = located.offset, manifest.chunk_count + _FIRST_STEP
        for _ in range(1 + _WIDER_LOOKS):
            begin = max(low, located.offset - reach)
            for one in self.window(begin, end):
                gathered.add(one.key, one.value)
                other = self._whole_manifest(one)  # a damaged one is not the newest: nobody starts on it
                if other is None or other.manifest.version < manifest.version:
                    continue
                if newer is None:
                    raise self.out_of_order(other, located)
                newer.append(other)
            if gathered.complete or begin == low:
                break
            end, reach = begin, reach * _STEP_GROWTH

    def out_of_order(self, before: Located, after: Located) -> SnapshotError:
        """Versions go up, but not from `before` to `after`."""
        return SnapshotError(
            f"{self.name}@{after.offset}: expected a version above {before.manifest.version} at {before.offset}, "
            f"got {after.manifest.version}"
        )
