"""When a publication is due, and when it goes out: as soon as the round it closes is averaged.

Used by the coordinator.
"""

from __future__ import annotations

import time

from streamtrain import _native

_PATIENCE_S = 0.5  # at most, for the round to be closed and averaged: a worker may have died, the ring may be full
_REST_S = 5.0  # at most, behind a publication that took longer than the interval
_LATE = 0.25  # of an interval: a publication later than this moves those after it, so that they stay apart


class PublicationClock:
    """`closes_rounds` False: rounds close only when they are full, and a publication takes what is averaged."""

    def __init__(self, ring: _native.CoordinatorEnd, interval_s: float, closes_rounds: bool) -> None:
        self._ring = ring
        self._closes_rounds = closes_rounds
        self._interval_ns = int(interval_s * 1e9)
        self._patience_ns = int(min(interval_s, _PATIENCE_S) * 1e9)
        self._begun_ns = self._next_ns = 0
        self._set(time.monotonic_ns() + self._interval_ns)

    def _set(self, due_ns: int) -> None:
        self._due_ns = due_ns
        if self._closes_rounds:
            self._ring.publication_due(due_ns)  # ingest closes its round by its own clock

    def begun(self) -> None:
        """A publication begins: until it has ended, none is due, and no round is closed for one."""
        now_ns = self._begun_ns = time.monotonic_ns()
        in_time = 0 <= now_ns - self._due_ns <= _LATE * self._interval_ns
        self._next_ns = (self._due_ns if in_time else now_ns) + self._interval_ns
        if self._closes_rounds:
            self._ring.publication_due(0)

    def ended(self) -> None:
        """A publication has ended: the next is due an interval after its begin. One that took longer than the interval
        is followed by a rest of the same length: a large model spends at most half of its time on publications."""
        now_ns = time.monotonic_ns()
        took_ns = now_ns - self._begun_ns
        self._set(self._next_ns if took_ns <= self._interval_ns else now_ns + min(took_ns, int(_REST_S * 1e9)))

    @property
    def left_s(self) -> float:
        """Until the next is due; 0 when it is."""
        return max(0, self._due_ns - time.monotonic_ns()) / 1e9

    def wait(self, timeout_s: float) -> bool:
        """Waits up to the time-out and returns whether a publication that is due may go out."""
        now_ns = time.monotonic_ns()
        if now_ns < self._due_ns:
            time.sleep(min(timeout_s, self.left_s))
            return False
        if not self._closes_rounds or now_ns - self._due_ns > self._patience_ns:
            return True
        return self._ring.wait_publication(self._due_ns, timeout_s)
