"""A wait for the thing itself, with a deadline for hangs only."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def wait_for(what: Callable[[], Any], seconds: float = 240) -> Any:
    """The first true result of `what`."""
    until = time.monotonic() + seconds
    while not (result := what()):
        assert time.monotonic() < until, f"{what} stayed false for {seconds} s"
        time.sleep(0.01)
    return result
