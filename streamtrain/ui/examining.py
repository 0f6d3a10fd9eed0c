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
from streamtrain.kafka.snapshots import SnapshotTopic
from streamtrain.topics.manifest import CHUNK_BYTES
from streamtrain.ui.block_figures import STEPS, figures, sampled
from streamtrain.ui.examined import MOST_VERSIONS, Examined, Snapshots
from streamtrain.ui.following import Following

log = logging.getLogger("streamtrain.ui")

LOOK_S = 0.5
MOST_HELD = MOST_VERSIONS // 2  # the newest of those that the topic has are looked into
LARGEST_BYTES = 2**30  # a snapshot above it is not fetched for a picture
_REST_S = 10.0  # at most, between two: as long as the first took
_WATCHED_FOR_S = 30.0


@dataclass(frozen=True)
class Held:
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
        self.held: tuple[Held, ...] = ()  # newest first
        self._following = following
        self.snapshots = Snapshots()
        self._refused: dict[bytes, str] = {}
        self._wanted: tuple[int, ...] = ()
        self._watched_at_s = -_WATCHED_FOR_S
        self._closing, self._woken = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"ui-examining-{following.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._woken.set()
        self._thread.join(10)

    def watched(self, *wanted: int) -> None:
        """Somebody is looking, at these versions first."""
        slept = time.monotonic() - self._watched_at_s > _WATCHED_FOR_S
        self._watched_at_s = time.monotonic()
        if slept or wanted != self._wanted:
            self._wanted = wanted
            self._woken.set()

    @property
    def stays(self) -> bool:
        """True while somebody is looking."""
        return time.monotonic() - self._watched_at_s <= _WATCHED_FOR_S

    def refusal(self, version: int) -> str:
        """Why there is nothing to show of a version that the topic has; "" where there is, or will be."""
        return next((self._refused.get(each.digest, "") for each in self.held if each.version == version), "")

    @property
    def left(self) -> int:
        """How many of those that the topic has are still to be looked into."""
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
            self.held = ()
            return
        own = newest.manifest
        found = [Held(own.version, newest.digest, own.archived, own.created_ms, own.chunk_count)]
        found += [
            Held(kept.version, kept.digest, kept.archived, kept.created_ms, kept.model_chunks + kept.trainer_chunks)
            for kept in own.kept
        ]
        self.held = tuple(sorted(found, key=lambda held: -held.version))
        digests = {held.digest for held in found}
        self._refused = {digest: why for digest, why in self._refused.items() if digest in digests}

    def _waiting(self) -> list[Held]:
        """Returns the snapshots still to examine: first the wanted ones, then from the newest down."""
        wanted = self._wanted

        def is_known(held: Held) -> bool:
            found = self.snapshots.of(held.version)
            if held.digest in self._refused or found is None or found.digest != held.digest:
                return held.digest in self._refused
            return held.version not in wanted or self.snapshots.has_values(held.version)

        looked_at = [*self.held[:MOST_HELD], *(held for held in self.held[MOST_HELD:] if held.version in wanted)]
        left = [held for held in looked_at if not is_known(held)]
        return sorted(left, key=lambda held: held.version not in wanted)

    def _examine(self, topic: SnapshotTopic, held: Held) -> None:
        try:
            self._take(topic, held)
        except KafkaUnreachable:
            raise
        except (SnapshotError, UserMistake) as error:  # another may have taken its place since
            log.info("version %d of %s cannot be shown: %s", held.version, self._following.name, error)
            self._refused[held.digest] = str(error)

    def _take(self, topic: SnapshotTopic, held: Held) -> None:
        size = held.chunks * CHUNK_BYTES
        if size > LARGEST_BYTES:
            raise SnapshotError(f"version {held.version}: expected at most {LARGEST_BYTES:,} bytes, got about {size:,}")
        stored = topic.version(held.version)
        parameters = {name: each for name, each in payload.decode(stored.model).items() if each.dtype == np.float32}
        trainer = payload.decode(stored.trainer) if stored.trainer is not None else {}
        steps = trainer.pop(STEPS, None)
        kept = {name: each for name, each in trainer.items() if each.dtype == np.float32}
        shapes = {name: each.shape for name, each in parameters.items()}
        values = sampled(parameters)
        found = Examined(
            held.version, stored.digest, stored.manifest.lineage, stored.manifest.created_ms,
            0 if steps is None else int(steps.max(initial=0)), figures(shapes, values, sampled(kept)),
        )  # fmt: skip
        self.snapshots.add(found, values, self._wanted, [each.version for each in self.held[:MOST_HELD]])
