"""Ctrl-C and SIGTERM while a command works: the first asks it to finish what it has begun, the second ends it.

Exit code 0 after a SIGTERM where all that was begun is finished, else exits.INTERRUPTED.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, TracebackType
from typing import Self, TypeVar, cast

from streamtrain import exits
from streamtrain.errors import StreamtrainError

T = TypeVar("T")
_END = object()


class StoppedAtOnce(BaseException):
    """Ends the process without a wait for anything: after a second signal, or with an error that main() reports."""

    def __init__(self, error: StreamtrainError | None = None) -> None:
        super().__init__()
        self.error = error


class _Stopped(BaseException):
    """Ends a wait."""


class StopSignals:
    """Takes SIGINT and SIGTERM of the main thread while it is open."""

    def __init__(self) -> None:
        self._signals = 0
        self._waiting = False
        self.interrupted = False  # by Ctrl-C

    def is_set(self) -> bool:
        return self._signals > 0

    @property
    def code(self) -> int:
        """Returns the exit code of a command that has finished everything it began."""
        return exits.INTERRUPTED if self.interrupted else exits.DONE

    def wait_for(self, function: Callable[[], T]) -> T | None:
        """Returns what the function returns; None if a signal has come or comes meanwhile, which interrupts the
        function."""
        try:
            self._waiting = True
            return None if self._signals else function()
        except _Stopped:
            return None
        finally:
            self._waiting = False

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """Yields the items up to the first signal, which interrupts the wait for the next one."""
        left = iter(items)
        while (found := self.wait_for(lambda: next(left, _END))) is not None and found is not _END:
            yield cast(T, found)

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._on) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        self.interrupted |= number == signal.SIGINT
        if self._signals > 1:
            raise StoppedAtOnce
        if self._waiting:
            self._waiting = False
            raise _Stopped
