"""The snapshots of one job, looked into one after the other: those that are kept, and new ones while somebody watches.

A thread of its own fetches them whole, those whose digests it has not seen.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

import numpy as np

from streamtrain.compute import snapshot as payload
from streamtrain.errors import KafkaUnreachable, SnapshotError, StreamtrainError, UserMistake
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.topics.manifest import CHUNK_BYTES
from streamtrain.ui.block_figures import STEPS, figures, sampled
from streamtrain.ui.examined import MOST_VERSIONS, Examined, Snapshots
from streamtrain.ui.followed_job import Following

log = logging.getLogger("streamtrain.ui")

LOOK_S = 0.5
MAX_NEWEST = MOST_VERSIONS // 2  # the newest of those that the topic has are looked into
LARGEST_BYTES = 2**30  # a snapshot above it is not fetched for a picture
_REST_S = 10.0  # at most, between two: as long as the first took
_WATCHED_FOR_S = 30.0


@dataclass(frozen=True)
class TopicEntry:
    """A snapshot that the topic has now."""

    version: int
    digest: bytes
    archived: bool
    created_ms: int
    chunks: int


class Examining:
    """Examines the snapshots of a followed job until close(). Any thread may read its results."""

    def __init__(self, following: Following) -> None:
        self.error = ""
        self.entries: tuple[TopicEntry, ...] = ()  # newest first
        self._following = following
        self.snapshots = Snapshots()
        self._refused: dict[bytes, str] = {}
        self._priority: tuple[int, ...] = ()
        self._watched_at_s = -_WATCHED_FOR_S
        self._closing, self._woken = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"ui-examining-{following.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._woken.set()
        self._thread.join(10)

    def watched(self, *priority: int) -> None:
        """Somebody is looking, at these versions first."""
        slept = time.monotonic() - self._watched_at_s > _WATCHED_FOR_S
        self._watched_at_s = time.monotonic()
        if slept or priority != self._priority:
            self._priority = priority
            self._woken.set()

    @property
    def stays(self) -> bool:
        """True while somebody is looking."""
        return time.monotonic() - self._watched_at_s <= _WATCHED_FOR_S

    def refusal(self, version: int) -> str:
        """Why there is nothing to show of a version that the topic has; "" where there is, or will be."""
        return next((self._refused.get(each.digest, "") for each in self.entries if each.version == version), "")

    @property
    def left(self) -> int:
        """Returns how many of the topic's snapshots are still to be examined."""
        return len(self._waiting())

    # in the thread

    def _run(self) -> None:
        while not self._closing.is_set():
            if not self.stays:
                self._woken.wait()
            self._woken.clear()
            try:
                with self._following.snapshots as topic:
                    self._watch(topic)
            except StreamtrainError as error:
                self.error = str(error)
                self._closing.wait(LOOK_S)

    def _watch(self, topic: SnapshotTopic) -> None:
        while not self._closing.is_set() and self.stays:
            self._look(topic)
            self.error = ""
            waiting = self._waiting()
            if waiting:
                begun_s = time.monotonic()
                self._examine(topic, waiting[0])
                self._closing.wait(min(_REST_S, time.monotonic() - begun_s))
            else:
                self._woken.wait(LOOK_S)
                self._woken.clear()

    def _look(self, topic: SnapshotTopic) -> None:
        newest = topic.newest_manifest()
        if newest is None:
            self.entries = ()
            return
        own = newest.manifest
        found = [TopicEntry(own.version, newest.digest, own.archived, own.created_ms, own.chunk_count)]
        found += [
            TopicEntry(
                kept.version, kept.digest, kept.archived, kept.created_ms, kept.model_chunks + kept.trainer_chunks
            )
            for kept in own.kept
        ]
        self.entries = tuple(sorted(found, key=lambda entry: -entry.version))
        digests = {entry.digest for entry in found}
        self._refused = {digest: why for digest, why in self._refused.items() if digest in digests}

    def _waiting(self) -> list[TopicEntry]:
        """Returns the snapshots still to examine: first the wanted ones, then from the newest down."""
        priority = self._priority

        def is_known(entry: TopicEntry) -> bool:
            found = self.snapshots.of(entry.version)
            if entry.digest in self._refused or found is None or found.digest != entry.digest:
                return entry.digest in self._refused
            return entry.version not in priority or self.snapshots.has_values(entry.version)

        looked_at = [
            *self.entries[:MAX_NEWEST],
            *(entry for entry in self.entries[MAX_NEWEST:] if entry.version in priority),
        ]
        left = [entry for entry in looked_at if not is_known(entry)]
        return sorted(left, key=lambda entry: entry.version not in priority)

    def _examine(self, topic: SnapshotTopic, entry: TopicEntry) -> None:
        try:
            self._take(topic, entry)
        except KafkaUnreachable:
            raise
        except (SnapshotError, UserMistake) as error:  # another may have taken its place since
            log.info("version %d of %s cannot be shown: %s", entry.version, self._following.name, error)
            self._refused[entry.digest] = str(error)

    def _take(self, topic: SnapshotTopic, entry: TopicEntry) -> None:
        size = entry.chunks * CHUNK_BYTES
        if size > LARGEST_BYTES:
            raise SnapshotError(
                f"version {entry.version}: expected at most {LARGEST_BYTES:,} bytes, got about {size:,}"
            )
        stored = topic.version(entry.version)
        parameters = {name: each for name, each in payload.decode(stored.model).items() if each.dtype == np.float32}
        trainer = payload.decode(stored.trainer) if stored.trainer is not None else {}
        steps = trainer.pop(STEPS, None)
        kept = {name: each for name, each in trainer.items() if each.dtype == np.float32}
        shapes = {name: each.shape for name, each in parameters.items()}
        values = sampled(parameters)
        found = Examined(
            entry.version, stored.digest, stored.manifest.lineage, stored.manifest.created_ms,
            0 if steps is None else int(steps.max(initial=0)), figures(shapes, values, sampled(kept)),
        )  # fmt: skip
        self.snapshots.add(found, values, self._priority, [each.version for each in self.entries[:MAX_NEWEST]])
