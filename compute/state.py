"""A state as Python sees it: NumPy views of its blocks, wherever native laid them, and of the arena's buffers."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from streamtrain import _native
from streamtrain.compute.spec import DTYPES, Array

Layout = _native.StateLayout | _native.PublishedLayout   # of a state; of a mean buffer


def attach(descriptor: int) -> _native.Arena:
    """The arena behind a descriptor handed down by the supervisor."""
    return _native.Arena.attach(descriptor)


def view(address: int, size: int) -> npt.NDArray[np.uint8]:
    """`size` bytes at `address`, writable, without a copy; valid as long as the arena is."""
    return np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(address)), np.uint8)


def views(layout: Layout, state: bytes | memoryview | Array) -> dict[str, Array]:
    """Every block of a state as an array over its bytes, without a copy; writable if `state` is."""
    raw = np.frombuffer(state, np.uint8)
    assert len(raw) == layout.state_bytes, (len(raw), layout.state_bytes)
    return {block.name: block_view(block, raw, block.offset) for block in layout.blocks}


def block_view(block: _native.StateBlock, memory: Array, offset: int) -> Array:
    """The block that lies `offset` bytes from the start of `memory`, without a copy."""
    return memory[offset : offset + block.bytes].view(block_dtype(block)).reshape(block.shape)


def block_dtype(block: _native.StateBlock) -> np.dtype[Any]:
    return np.dtype(DTYPES[block.dtype])
