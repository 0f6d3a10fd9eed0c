"""A job's newest snapshot, or one that is named, followed in a thread: what a live model and a predictor share."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from streamtrain.errors import KafkaBroken
from streamtrain.kafka.follower import Follower
from streamtrain.kafka.snapshot_reader import BEST, SnapshotTopic, Version
from streamtrain.topics.chunks import Located, Stored

T = TypeVar("T")

RETRY_S = 1.0  # after a failure
_LOOK_S = 0.1  # how soon the end is seen
_END_S = 15.0  # the end waits this long for a call to Kafka to return


class Following(ABC, Generic[T]):
    """Takes the newest snapshot, then each newer one; what is outdated, not whole or malformed is passed over.

    `stays_at`: takes this version alone, or the best one, then each that is the best in its place. `whole`: takes every
    snapshot in turn, with its trainer state.

    All methods that a subclass gives are called in that thread. What fails is told to `_failed`; where that says so the
    snapshots are followed anew, and what was taken stays until there is a newer one.
    """

    def __init__(
        self, topic: SnapshotTopic, name: str, stays_at: Version | None = None, whole: bool = False
    ) -> None:
        """Opens nothing; closes `topic` at the end."""
        self._topic = topic
        self._stays_at, self._whole = stays_at, whole
        self._stopping = threading.Event()
        self._after = 0  # the version given last
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def _prepared(self, stored: Stored) -> T:
        """Returns the object made from a snapshot. If it raises, the snapshot is refused and does not count."""

    @abstractmethod
    def _take(self, item: T) -> None:
        """From now on, in the place of the one before."""

    @abstractmethod
    def _failed(self, error: Exception) -> bool:
        """Returns whether to go on after this error."""

    @abstractmethod
    def _refused(self, text: str) -> None:
        """Why a snapshot is left out."""

    def _answered(self) -> None:
        """Kafka has."""

    def _looked(self) -> None:
        """After each look for something new, some times a second."""

    def _end(self) -> None:
        """Ends the thread; waits for it where it is another."""
        self._stopping.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(_END_S)

    def _run(self) -> None:
        with self._topic:
            while not self._stopping.is_set():
                try:
                    self._follow()
                except Exception as error:  # nobody else would hear of it
                    if not self._failed(error):
                        return
                    if isinstance(error, KafkaBroken):
                        self._topic.renew()
                    self._stopping.wait(RETRY_S)

    def _follow(self) -> None:
        """UserMistake where the topic does not hold what is named, and nothing was taken before."""
        found = None if self._stays_at is None or self._after else self._topic.named(self._stays_at)
        if isinstance(self._stays_at, int):
            return self._stay(found)
        best = self._stays_at == BEST
        whole, refused = self._whole, self._refused
        follower = Follower(self._topic, self._versioned, whole, not whole, self._after, refused, best)
        for versioned_item in follower.start():
            self._give(versioned_item)
        self._answered()
        while not self._stopping.is_set():
            for versioned_item in follower.poll(_LOOK_S):
                self._answered()
                self._give(versioned_item)
            self._looked()

    def _stay(self, found: Located | None) -> None:
        """With that one, or the one taken before."""
        if found is not None:
            self._give(self._versioned(self._topic.load(found, trainer=False)))
        self._answered()
        while not self._stopping.is_set():
            self._topic.poll(_LOOK_S)  # reads nothing: hears that the brokers are lost
            self._looked()

    def _versioned(self, stored: Stored) -> tuple[int, T]:
        return stored.manifest.version, self._prepared(stored)

    def _give(self, versioned_item: tuple[int, T]) -> None:
        self._after = versioned_item[0]
        self._take(versioned_item[1])
