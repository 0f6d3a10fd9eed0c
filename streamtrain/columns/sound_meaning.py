"""What a clip of sound means, slowly: its head and blocks walked a second time."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from streamtrain.columns import sounds
from streamtrain.columns.sounds import SoundForm

_SAMPLE_BYTES = 4
_BITS = {1: (8, 16, 24, 32), 3: (32, 64), 6: (8,), 7: (8,)}  # by format: PCM, float, A-law, mu-law
_EXTENSIBLE, _UNTOLD = 0xFFFE, 0xFFFFFFFF

Head = tuple[int, int, int]  # samples a second, channels, samples of each


def numbers(encoded: bytes, form: SoundForm, most_bytes: int) -> NDArray[np.float32] | None:
    """What a clip becomes; None of what is none, or not of this rate, or a larger one."""
    head = head_of(encoded)
    if head is None:
        return None
    rate, channels, count = head
    fits = 1 <= channels <= sounds.MOST_CHANNELS and 1 <= count <= most_bytes // _SAMPLE_BYTES // max(channels, 1)
    wave = sounds.opened(encoded, form) if fits and rate == form.rate else None
    return sounds.features(wave, form) if wave is not None and form.mel else wave


def head_of(encoded: bytes) -> Head | None:
    """What a clip's head tells; None of what is none, or cut short."""
    try:
        if encoded.startswith(b"RIFF") and encoded[8:12] == b"WAVE":
            return _wav(encoded)
        return _flac(encoded) if encoded.startswith(b"fLaC") else None
    except struct.error:
        return None


def _wav(encoded: bytes) -> Head | None:
    at, head = 12, None
    while at + 8 <= len(encoded):
        name, size = struct.unpack_from("<4sI", encoded, at)
        at += 8
        if name == b"data" and size == _UNTOLD:
            size = len(encoded) - at
        if at + size > len(encoded):
            return None
        if name == b"fmt ":
            if head is not None or size < 16:
                return None
            told, channels, rate, _, of_frame, bits = struct.unpack_from("<HHIIHH", encoded, at)
            format_ = struct.unpack_from("<H", encoded, at + 24)[0] if told == _EXTENSIBLE and size >= 40 else told
            if bits not in _BITS.get(format_, ()) or not of_frame or of_frame != channels * bits // 8:
                return None
            head = rate, channels, of_frame
        if name == b"data":
            return None if head is None else (head[0], head[1], size // head[2])
        at += size + size % 2
    return None


def _flac(encoded: bytes) -> Head | None:
    at, head, last = 4, None, False
    while not last:
        (told,) = struct.unpack_from(">I", encoded, at)
        last, kind, size = bool(told >> 31), told >> 24 & 0x7F, told & 0xFFFFFF
        if (head is None) != (kind == 0) or (head is None and size != 34) or at + 4 + size >= len(encoded):
            return None
        if head is None:
            (form,) = struct.unpack_from(">Q", encoded, at + 14)
            head = form >> 44, (form >> 41 & 7) + 1, form & 0xFFFFFFFFF
        at += 4 + size
    return head
