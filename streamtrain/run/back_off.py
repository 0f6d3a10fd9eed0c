"""The supervisor's pauses before a new run, and its decision to give up.

Used by the supervisor.
"""

from __future__ import annotations

_FIRST_S, _LONGEST_S = 0.2, 5.0
_LONG_RUN_S = 60.0  # a run as long as this did what it could, on a stream without a record too
_MOST_ERRORS = 5


class BackOff:
    """Grows only from one run that published nothing to the next."""

    def __init__(self) -> None:
        self._pause_s = _FIRST_S
        self.errors = 0  # of runs one after the other

    def pause_s(self, published: bool, lasted_s: float, is_error: bool) -> float | None:
        """The pause after a run that ended so; None after too many errors. `is_error`: a child's unexpected error."""
        if published or lasted_s > _LONG_RUN_S:
            self._pause_s, self.errors = _FIRST_S, 0
        self.errors += is_error
        if self.errors >= _MOST_ERRORS:
            return None
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, _LONGEST_S)
        return pause_s
