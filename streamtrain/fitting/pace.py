"""The pace of training, which waits for callbacks: every so many rounds or passes over the rows, and at the end.

No round is opened until then, so that what callbacks see depends on no clock; the waits change no bit.
"""

from __future__ import annotations

import threading

from streamtrain import _native

_NONE = -1


class Pace:
    """Ingest's thread says where passes end, the publisher's when it has looked."""

    def __init__(self, rounds: int | None = None, epochs: int | None = None) -> None:
        self._rounds, self._epochs = rounds, epochs
        self._ring: _native.CoordinatorEnd | None = None
        self._changed = threading.Condition()
        self._looked = self._awaited = _NONE
        self._left = False

    def begin(self, ring: _native.CoordinatorEnd, round: int) -> None:
        """Before the first round, which follows `round`, is opened."""
        self._ring, self._looked = ring, round
        self._await_round(round)

    @property
    def awaited(self) -> int:
        """The round whose publication is to be looked at; below 0 where it is not known yet."""
        return self._awaited

    def epoch_ended(self, epoch: int, is_last: bool, round: int) -> None:
        """Waits until `round`, the newest there is, was looked at, where that is asked for."""
        is_due = is_last or (self._epochs is not None and epoch % self._epochs == 0)
        with self._changed:
            if not is_due or round <= self._looked:
                return
            self._awaited = round
            self._changed.wait_for(lambda: self._looked >= round or self._left)

    def looked(self, round: int) -> None:
        """Training goes on behind this round."""
        with self._changed:
            self._looked = round
            self._await_round(round)
            self._changed.notify_all()

    def leave(self) -> None:
        """Nobody waits any more, and the ring is let go."""
        with self._changed:
            self._left, self._ring = True, None
            self._changed.notify_all()

    def _await_round(self, round: int) -> None:
        """The next on the grid behind this one."""
        self._awaited = _NONE
        if self._rounds is not None and self._ring is not None:
            self._awaited = (round + 1) // self._rounds * self._rounds + self._rounds - 1
            self._ring.bound_rounds(self._awaited + 1)
