"""JPEG and PNG, decoded by OpenCV (extra `images`): what columns/media.py asks in its threads.

OpenCV is imported when the first column of pictures is made, and gives up the GIL while it decodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from streamtrain import _native
from streamtrain.errors import UserMistake


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


def require() -> None:
    """UserMistake without OpenCV."""
    _opencv()


def decode(form: tuple[int, int, int], encoded: Sequence[memoryview], rows: NDArray[np.uint8]) -> bytes:
    """Each picture into its row of uint8, brought to `form` (height, width, channels); a byte for each: 1, or 0 where
    it cannot."""
    good, table = bytearray(len(encoded)), rows.reshape(len(encoded), *form)
    for at, raw in enumerate(encoded):
        found = opened(raw, form[2])
        if found is None:
            continue
        if found.shape == form:
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
