"""Memory of large states of one layout that follow one another: pages that are equal lie there once.

A base is written once and sealed, in a file of memory (memfd_create(2)); each state is a private mapping of it, with
the pages of its own that differ (mmap(2), MAP_PRIVATE). Nothing can be written through a file that is sealed.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import weakref
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from streamtrain import _native
from streamtrain.compute.spec import Array

LEAST_BYTES = 16 * 1024 * 1024  # of a state for which it is worth an open file
_MOST_OWN = 0.25  # of a state: with more pages of its own it is a base itself
_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL

State = npt.NDArray[np.uint8]
Put = Callable[[Array, Array], None]  # where to, and what: both contiguous, of the same type and shape
Write = Callable[[State, Put], None]  # puts everything that a state holds into it


class Base:
    """A state that others may have pages in common with. Any thread."""

    def __init__(self, size_bytes: int, write: Write) -> None:
        """OSError where there is no such memory, or no open file is left."""
        self._file = os.memfd_create("streamtrain-state", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        weakref.finalize(self, os.close, self._file)
        self._size_bytes = size_bytes
        os.ftruncate(self._file, size_bytes)
        write(np.frombuffer(mmap.mmap(self._file, size_bytes), np.uint8), np.copyto)  # unmapped with the array
        fcntl.fcntl(self._file, fcntl.F_ADD_SEALS, _SEALS)
        self.state = self._mapped()
        self.state.flags.writeable = False

    def other(self, write: Write) -> State | None:
        """Another state, read-only; None where too much of it differs."""
        state, left = self._mapped(), int(_MOST_OWN * self._size_bytes)

        def put(to: Array, what: Array) -> None:
            nonlocal left
            if left >= 0:
                left -= _native.copy_changed(to.ctypes.data, what.ctypes.data, what.nbytes, left)

        write(state, put)
        state.flags.writeable = False
        return state if left >= 0 else None

    def _mapped(self) -> State:
        return np.frombuffer(mmap.mmap(self._file, self._size_bytes, flags=mmap.MAP_PRIVATE), np.uint8)
