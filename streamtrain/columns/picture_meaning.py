"""A slow reference for what a picture means: it walks the markers a second time and averages points with NumPy."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from streamtrain.columns import pictures

_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_POINT_BYTES, _MOST_SCANS = 3, 64
_SCAN, _END = 0xDA, 0xD9
_HEADS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def points(encoded: bytes, form: tuple[int, int, int], most_bytes: int) -> NDArray[np.uint8] | None:
    """The points of a picture brought to (height, width, channels); None of what is no whole one, or a larger one."""
    if not _is_whole(encoded, most_bytes):
        return None
    found = pictures.opened(encoded, form[2])
    return None if found is None else averaged(found, form[0], form[1])


def size_of(encoded: bytes) -> tuple[int, int] | None:
    """Height and width that a picture's head tells; None of what is none."""
    try:
        if encoded.startswith(_PNG):
            width, height = struct.unpack_from(">II", encoded, len(_PNG) + 8)
            return int(height), int(width)
        found = (at for marker, at in _markers(encoded) if marker in _HEADS) if encoded.startswith(_JPEG) else iter(())
        at = next(found, None)
        return None if at is None else struct.unpack_from(">HH", encoded, at + 3)
    except struct.error:
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
