"""The arena as Python sees it: NumPy views of its buffers, and the layout in which mean buffers are published."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from streamtrain import _native


def attach(descriptor: int) -> _native.Arena:
    """The arena behind a descriptor handed down by the supervisor."""
    return _native.Arena.attach(descriptor)


def view(address: int, size: int) -> npt.NDArray[np.uint8]:
    """`size` bytes at `address`, writable, without a copy; valid as long as the arena is."""
    return np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(address)), np.uint8)


class StateBlock(Protocol):
    """A block of a worker's state, as compute.model lays it out."""

    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class PublishedBlock:
    name: str
    group: str
    rule: str
    offset: int
    count: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class PublishedLayout:
    """A mean buffer's blocks. Blocks kept per worker stand once per worker, as `<block>@<worker>`, shape (1, …)."""

    blocks: tuple[StateBlock, ...]
    state_bytes: int


def published_layout(blocks: Sequence[StateBlock], state_bytes: int, workers: int) -> PublishedLayout:
    """The layout of a mean buffer (native/ring/arena.h): a whole state, then every worker's local blocks."""
    shared = [block for block in blocks if block.rule != "local"]
    local = [block for block in blocks if block.rule == "local"]
    end = _align(state_bytes)
    for worker in range(workers):
        for block in local:
            name = f"{block.name}@{worker}"
            shared.append(PublishedBlock(name, block.group, block.rule, end, block.count, (1, *block.shape)))
            end += _align(4 * block.count)
    return PublishedLayout(tuple(shared), end)


def copy_local_blocks(
    blocks: Sequence[StateBlock], state_bytes: int, workers: int, mean: npt.NDArray[np.uint8]
) -> None:
    """Gives every worker the local blocks as they stand in the state: the start of a lineage."""
    end = _align(state_bytes)
    for _ in range(workers):
        for block in blocks:
            if block.rule == "local":
                size = 4 * block.count
                mean[end : end + size] = mean[block.offset : block.offset + size]
                end += _align(size)


def _align(size: int) -> int:
    return (size + 63) & ~63
