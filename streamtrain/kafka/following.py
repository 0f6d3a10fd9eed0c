"""A job's newest snapshot, followed in a thread of its own: what a live model and a predictor have in common."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from streamtrain.errors import KafkaBroken
from streamtrain.kafka.follower import Follower
from streamtrain.kafka.snapshots import SnapshotTopic
from streamtrain.topics.chunks import Stored

T = TypeVar("T")

RETRY_S = 1.0  # after a failure
_LOOK_S = 0.1  # how soon the end is seen
_END_S = 15.0  # the end waits this long for a call to Kafka to return


class Following(ABC, Generic[T]):
    """Takes the newest snapshot, then each newer one; what is outdated, not whole or malformed is passed over.

    All methods that a subclass gives are called in that thread. What fails is told to `_failed`; where that says so the
    snapshots are followed anew, and what was taken stays until there is a newer one.
    """

    def __init__(self, topic: SnapshotTopic, name: str) -> None:
        """Opens nothing; closes `topic` at the end."""
        self._topic = topic
        self._stopping = threading.Event()
        self._after = 0  # the version given last
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def _prepared(self, stored: Stored) -> T:
        """What is made of a snapshot. Whatever it raises, the snapshot is refused, and counts for nothing."""

    @abstractmethod
    def _take(self, made: T) -> None:
        """From now on, in the place of the one before."""

    @abstractmethod
    def _failed(self, error: Exception) -> bool:
        """Whether to go on."""

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
        follower = Follower(self._topic, self._versioned, False, True, self._after, self._refused)
        for made in follower.start():
            self._give(made)
        self._answered()
        while not self._stopping.is_set():
            for made in follower.poll(_LOOK_S):
                self._answered()
                self._give(made)
            self._looked()

    def _versioned(self, stored: Stored) -> tuple[int, T]:
        return stored.manifest.version, self._prepared(stored)

    def _give(self, made: tuple[int, T]) -> None:
        self._after = made[0]
        self._take(made[1])
