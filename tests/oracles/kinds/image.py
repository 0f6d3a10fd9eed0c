"""A picture: its markers are walked a second time, its points averaged with NumPy."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from streamtrain.columns import pictures
from streamtrain.columns.column import Column
from tests.oracles.kinds._media import MediaOracle

_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_POINT_BYTES, _MOST_SCANS = 3, 64
_SCAN, _END = 0xDA, 0xD9
_HEADS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class Image(MediaOracle):
    def opened(self, column: Column, encoded: bytes) -> NDArray[np.uint8] | None:
        height, width, channels = column.shape
        if not _is_whole(encoded, column.max_decoded_bytes):
            return None
        found = pictures.opened(encoded, channels)
        return None if found is None else averaged(found, height, width)


def size_of(encoded: bytes) -> tuple[int, int] | None:
    """Returns height and width in a picture's head, which may be cut short behind it; None if it has none."""
    try:
        found = _png_size(encoded) if encoded.startswith(_PNG) else _jpeg_size(encoded)
    except struct.error:
        return None
    return found if found is not None and all(found) else None


def _png_size(encoded: bytes) -> tuple[int, int] | None:
    size, name, width, height, _, _ = struct.unpack_from(">I4sII5sI", encoded, len(_PNG))
    return (height, width) if name == b"IHDR" and size == 13 else None


def _jpeg_size(encoded: bytes) -> tuple[int, int] | None:
    for marker, at in _markers(encoded) if encoded.startswith(_JPEG) else ():
        if marker in (_SCAN, _END):
            break
        if marker in _HEADS:
            size, _, height, width = struct.unpack_from(">HBHH", encoded, at)
            return (height, width) if 8 <= size <= len(encoded) - at else None
    return None


def averaged(found: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Each point the mean of the area of the picture that it covers, rounded."""
    down, across = _shares(found.shape[0], height), _shares(found.shape[1], width)
    total = np.einsum("ys,sxc,wx->ywc", down, found.astype(np.int64), across, optimize=True)
    area = found.shape[0] * found.shape[1]
    mean: NDArray[np.uint8] = ((total + area // 2) // area).astype(np.uint8)
    return mean


def _shares(given: int, target: int) -> NDArray[np.int64]:
    """[target, given]: how much of each, in parts of `given` * `target`, lies in each."""
    to, of = np.arange(target)[:, None], np.arange(given)
    parts = np.minimum((to + 1) * given, (of + 1) * target) - np.maximum(to * given, of * target)
    shares: NDArray[np.int64] = np.maximum(parts, 0)
    return shares


def _is_whole(encoded: bytes, most_bytes: int) -> bool:
    try:
        if encoded.startswith(_PNG):
            return _whole_png(encoded, most_bytes)
        return encoded.startswith(_JPEG) and _whole_jpeg(encoded, most_bytes)
    except struct.error:
        return False


def _fits(width: int, height: int, most_bytes: int) -> bool:
    return width > 0 and height > 0 and width * height <= most_bytes // _POINT_BYTES


def _whole_png(encoded: bytes, most_bytes: int) -> bool:
    at = len(_PNG)
    while at + 12 <= len(encoded):
        size, name = struct.unpack_from(">I4s", encoded, at)
        if size > len(encoded) - at - 12 or (at == len(_PNG)) != (name == b"IHDR"):
            return False
        if name == b"IHDR":
            width, height = struct.unpack_from(">II", encoded, at + 8)
            if size != 13 or not _fits(width, height, most_bytes):
                return False
        if name == b"IEND":
            return True
        at += 12 + size
    return False


def _whole_jpeg(encoded: bytes, most_bytes: int) -> bool:
    heads = scans = 0
    for marker, at in _markers(encoded):
        if marker == _END:
            return scans > 0
        if marker in _HEADS:
            height, width, colours = struct.unpack_from(">HHB", encoded, at + 3)
            heads += 1
            too_short = struct.unpack_from(">H", encoded, at)[0] < 8
            if heads > 1 or too_short or colours not in (1, 3) or not _fits(width, height, most_bytes):
                return False
        if marker == _SCAN:
            scans += 1
            if not heads or scans > _MOST_SCANS:
                return False
    return False


def _markers(encoded: bytes) -> Iterator[tuple[int, int]]:
    """Each marker, and where its segment begins."""
    at = 2
    while at + 2 <= len(encoded) and encoded[at] == 0xFF:
        marker = encoded[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        yield marker, at + 2
        (size,) = struct.unpack_from(">H", encoded, at + 2)
        if size < 2 or at + 2 + size > len(encoded):
            return
        at += 2 + size
        while marker == _SCAN and at < len(encoded):
            at = encoded.find(b"\xff", at)
            if at < 0 or at + 2 > len(encoded):
                return
            if encoded[at + 1] not in (0, 0xFF, *range(0xD0, 0xD8)):
                break
            at += 1 if encoded[at + 1] == 0xFF else 2


ORACLE = Image()
