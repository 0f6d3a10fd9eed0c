"""Named places where a test may kill or stall a process.

Armed by settings only; unarmed a hit is one dictionary look-up.
The native ones (worker.*, ingest.*) are in native/base/failpoint.h and armed by the same text.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass

from streamtrain import _native


@dataclass
class _Armed:
    hits_left: int
    delay_s: float
    stall_s: float


_armed: dict[str, _Armed] = {}


def arm(text: str) -> None:
    """Arms "name=hit", "name=hit@delay_ms" (kill so long after the hit), "name=hit~stall_s" or "name=hit!SEGV".

    The last sends a signal other than KILL; commas join several. A leading "*" arms it in every life of a process.
    """
    for part in filter(None, text.split(",")):
        name, _, rest = part.removeprefix("*").partition("=")
        hit, _, stall = rest.partition("~")
        hit, _, name_of_signal = hit.partition("!")
        hit, _, delay = hit.partition("@")
        _armed[name] = _Armed(int(hit or 1), float(delay or 0) / 1000, float(stall or 0))
        _native.arm_failpoint(name, int(hit or 1), signal.Signals[f"SIG{name_of_signal or 'KILL'}"])


def for_life(text: str, first: bool) -> str:
    """Returns the part of `text` that a process gets: all of it in its first life, later only what is marked with
    "*"."""
    return ",".join(part for part in text.split(",") if first or part.startswith("*"))


def hit(name: str) -> None:
    """Passes the failpoint `name`."""
    armed = _armed.get(name)
    if armed is None:
        return
    armed.hits_left -= 1
    if armed.hits_left != 0:
        return
    if armed.stall_s:
        time.sleep(armed.stall_s)
    elif armed.delay_s:
        threading.Timer(armed.delay_s, os.kill, (os.getpid(), signal.SIGKILL)).start()
    else:
        os.kill(os.getpid(), signal.SIGKILL)
