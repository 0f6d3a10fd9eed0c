"""Holds back SIGINT and SIGTERM for steps that must not be cut in two, such as the start of a process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delivers the signals that come meanwhile at its end.

    The exception of a handler is lost where it strikes in a hook of a fork (os.register_at_fork), and after the fork it
    leaves a process that nobody knows. Does nothing in other threads than the main one, in which no handler runs.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM) if is_main}
    replaced = {number: handler for number, handler in before.items() if handler not in (None, signal.SIG_IGN)}
    pending: dict[int, None] = {}

    def note(number: int, frame: FrameType | None) -> None:
        pending[number] = None

    try:
        for number in replaced:
            signal.signal(number, note)
        yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
        for each in pending:
            signal.raise_signal(each)
