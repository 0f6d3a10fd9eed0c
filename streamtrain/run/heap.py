"""Settings of the C library's heaps: one for all threads of a process whose threads hand their memory on, and memory
that is free goes back to the kernel.

glibc gives each thread a heap of its own, up to eight a core. Messages are made in one thread and freed in one of
librdkafka's, and what lies free in one heap is nothing to the others: a flood of dead letters took 200 MB, not 70.
"""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8  # mallopt(3)


def share_one_heap() -> None:
    """Before threads are started; another C library than glibc has no such call, and no such heaps."""
    _call("mallopt", _M_ARENA_MAX, 1)


def return_free_memory() -> None:
    """Returns to the kernel what lies free in any thread's heap; malloc_trim(3) takes 2 ms for 40 MB."""
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*arguments)
