"""A wait for the thing itself, with a deadline for hangs only."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def wait_for(what: Callable[[], Any], seconds: float = 240) -> Any:
    """The first true result of `what`, asked less often the longer it takes: what is asked needs the processor too."""
    began = time.monotonic()
    while not (result := what()):
        waited = time.monotonic() - began
        assert waited < seconds, f"{what} stayed false for {seconds} s"
        time.sleep(min(max(waited / 10, 0.01), 0.25))
    return result
