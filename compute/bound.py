"""Memory a plan is bound to: a writable buffer, or the address of one kept alive by the caller."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute.spec import Array
from streamtrain.errors import UserMistake

Memory = Any   # anything with the buffer protocol, or an int


def at_address(address: int, size_bytes: int) -> Array:
    """Memory as bytes, not owned."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * int(size_bytes)).from_address(address))


def bound(memory: Memory | None, size_bytes: int, what: str) -> int:
    """The address; 0 for None. Raises UserMistake when a buffer is too small, read-only or not on a cache line."""
    if memory is None:
        return 0
    if isinstance(memory, int):
        address = memory
    else:
        array = np.frombuffer(memory, np.uint8)
        if array.nbytes < size_bytes:
            raise UserMistake(f"{what}: expected {size_bytes} bytes or more, got {array.nbytes}")
        address = int(array.ctypes.data)
    if address % _native.CACHE_LINE:
        line = _native.CACHE_LINE
        raise UserMistake(f"{what}: expected memory that starts on a multiple of {line}, got {address:#x}")
    return address
