"""JPEG and PNG, decoded by simplejpeg and OpenCV (extra `images`): what columns/media.py asks in its threads.

Both are imported when the first column of pictures is made, and give up the GIL while they decode. Both have
libjpeg-turbo in them, which makes the same points in either; simplejpeg has less around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from streamtrain import _native
from streamtrain.errors import UserMistake

_JPEG = b"\xff"  # how one begins, and no PNG


@cache
def _libraries() -> tuple[ModuleType, ModuleType]:
    """OpenCV, simplejpeg."""
    try:
        import cv2
        import simplejpeg
    except ImportError as error:
        raise UserMistake(
            f"columns of kind image need OpenCV and simplejpeg ({error.name} is not installed); install them with: "
            "pip install 'streamtrain[images]'"
        ) from None
    cv2.setNumThreads(1)  # the threads are ours
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)  # of bad pictures dead letters tell
    return cv2, simplejpeg


def require() -> None:
    """UserMistake without the libraries."""
    _libraries()


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


def opened(raw: bytes | memoryview, channels: int) -> NDArray[np.uint8] | None:
    """A picture's points as they are: uint8 [height, width, channels], colours as red, green and blue; None: it has
    none. An orientation that it tells is not looked at."""
    cv2, simplejpeg = _libraries()
    found: NDArray[np.uint8] | None
    if raw[:1] == _JPEG:
        try:
            found = simplejpeg.decode_jpeg(raw, "GRAY" if channels == 1 else "RGB")
            return found
        except (ValueError, RuntimeError, MemoryError):
            pass  # it takes no JPEG that is damaged, where OpenCV may make something of it
    how = cv2.IMREAD_IGNORE_ORIENTATION | (cv2.IMREAD_GRAYSCALE if channels == 1 else cv2.IMREAD_COLOR_RGB)
    try:
        found = cv2.imdecode(np.frombuffer(raw, np.uint8), how)
    except (cv2.error, MemoryError):
        return None
    return found[:, :, None] if found is not None and channels == 1 else found
