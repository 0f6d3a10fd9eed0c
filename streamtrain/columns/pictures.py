"""JPEG and PNG, decoded by OpenCV (extra `images`) in a pool of threads: what ingest, predictors and programs ask.

OpenCV is imported when the first column of pictures is made, and gives up the GIL while it decodes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from streamtrain import _native
from streamtrain.errors import UserMistake

MOST_THREADS = 16
FEW = 4  # pictures that are not worth another thread


@cache
def _opencv() -> ModuleType:
    try:
        import cv2
    except ImportError:
        raise UserMistake(
            "columns of kind image need OpenCV; install it with: pip install 'streamtrain[images]'"
        ) from None
    cv2.setNumThreads(1)  # the threads are ours
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)  # of bad pictures dead letters tell
    opencv: ModuleType = cv2
    return opencv


@cache
def threads() -> int:
    """How many decode at a time."""
    return min(MOST_THREADS, len(os.sched_getaffinity(0)))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads(), "pictures")


def require() -> None:
    """UserMistake without OpenCV."""
    _opencv()


def decode(height: int, width: int, channels: int, encoded: Sequence[memoryview], pixels: memoryview) -> bytes:
    """Each picture into its uint8 [height, width, channels] of `pixels`; a byte for each: 1, or 0 where it cannot."""
    table = np.frombuffer(pixels, np.uint8).reshape(len(encoded), height, width, channels)
    count = len(encoded)
    parts = min(threads(), -(-count // FEW))
    if parts < 2:
        return _decode_part(encoded, table)
    size = -(-count // (4 * parts))  # smaller than a thread's share: pictures differ
    starts = range(0, count, size)
    return b"".join(_pool().map(lambda at: _decode_part(encoded[at : at + size], table[at : at + size]), starts))


def _decode_part(encoded: Sequence[memoryview], table: NDArray[np.uint8]) -> bytes:
    good = bytearray(len(encoded))
    channels, shape = table.shape[3], table.shape[1:]
    for at, raw in enumerate(encoded):
        found = opened(raw, channels)
        if found is None:
            continue
        if found.shape == shape:
            table[at] = found
        else:
            _native.fit_picture(found, table[at])
        good[at] = 1
    return bytes(good)


@cache
def _how(channels: int) -> int:
    cv2 = _opencv()
    return int(cv2.IMREAD_IGNORE_ORIENTATION | (cv2.IMREAD_GRAYSCALE if channels == 1 else cv2.IMREAD_COLOR_RGB))


def opened(raw: bytes | memoryview, channels: int) -> NDArray[np.uint8] | None:
    """A picture's points as they are: uint8 [height, width, channels], colours as red, green and blue; None: it has
    none. An orientation that it tells is not looked at."""
    cv2 = _opencv()
    try:
        found: NDArray[np.uint8] | None = cv2.imdecode(np.frombuffer(raw, np.uint8), _how(channels))
    except (cv2.error, MemoryError):
        return None
    return found[:, :, None] if found is not None and channels == 1 else found
