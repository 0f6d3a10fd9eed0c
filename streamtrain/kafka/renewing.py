"""Clients of librdkafka that may go deaf (after a broker's stall of 25 s, two in forty): thrown away and made anew."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Generic, TypeVar

from streamtrain.background import in_background
from streamtrain.errors import KafkaBroken, KafkaUnreachable

C = TypeVar("C")
T = TypeVar("T")

_SILENCES = 2  # questions without an answer, one after the other, after which a client counts as deaf ...
_DEAF_S = 10.0  # ... if it has not answered for so long: a broker that is away refuses connections much faster
_CLOSE_S = 5.0


def leave_behind(client: object) -> Future[None]:
    """Closes a client, which may never come back; at the interpreter's end, where no thread starts, it goes with it."""
    if sys.is_finalizing():
        gone: Future[None] = Future()
        gone.set_result(None)
        return gone
    close = getattr(client, "close", lambda: None)  # an AdminClient ends when it is dropped
    return in_background(close, name="left behind")


class Renewing(Generic[C]):
    """One client, made by `make`, and anew when it was silent twice or is broken. One thread at a time."""

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self.client_count = 0  # clients so far: what was assigned to one before is not to this one
        self._begin()

    def _begin(self) -> None:
        self.client = self._make()
        self.client_count += 1
        self._answered()

    def _answered(self) -> None:
        self._silences, self._last_answer_s = 0, time.monotonic()

    def ask(self, question: Callable[[C], T]) -> T:
        """Returns the client's answer; raises what `question` raises."""
        try:
            answer = question(self.client)
        except KafkaUnreachable:  # also that nobody leads, which a client may go on saying when it is no longer true
            self._silences += 1
            if self._silences >= _SILENCES and time.monotonic() - self._last_answer_s >= _DEAF_S:
                self.renew()
            raise
        except KafkaBroken:
            self.renew()
            raise
        self._answered()
        return answer

    def renew(self) -> None:
        """Leaves the client behind for a new one."""
        leave_behind(self.client)
        self._begin()

    def close(self) -> None:
        """Closes the client, or leaves it behind where that takes too long."""
        wait([leave_behind(self.client)], _CLOSE_S)
