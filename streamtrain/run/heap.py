"""One heap for all threads of a process whose threads hand their memory on.

glibc gives each thread a heap of its own, up to eight a core. Messages are made in one thread and freed in one of
librdkafka's, and what lies free in one heap is nothing to the others: a flood of dead letters took 200 MB, not 70.
"""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8  # mallopt(3)


def share_one_heap() -> None:
    """Before threads are started; another C library than glibc has no such call, and no such heaps."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
