"""A sound clip: its header and blocks are walked a second time."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from streamtrain.columns import sounds
from streamtrain.columns.column import Column
from tests.oracles.kinds._media import MediaOracle

_SAMPLE_BYTES = 4
_BITS = {1: (8, 16, 24, 32), 3: (32, 64), 6: (8,), 7: (8,)}  # by format: PCM, float, A-law, mu-law
_MOST_HEADS = 16
_EXTENSIBLE, _UNTOLD = 0xFFFE, 0xFFFFFFFF

Head = tuple[int, int, int]  # samples a second, channels, samples of each


class Audio(MediaOracle):
    def opened(self, column: Column, encoded: bytes) -> NDArray[np.float32] | None:
        form, head = column.sound, head_of(encoded)
        if head is None:
            return None
        rate, channels, count = head
        most = column.max_decoded_bytes // _SAMPLE_BYTES // max(channels, 1)
        fits = 1 <= channels <= sounds.MOST_CHANNELS and 1 <= count <= most
        wave = sounds.opened(encoded, form) if fits and rate == form.rate else None
        return sounds.features(wave, form) if wave is not None and form.mel else wave


def head_of(encoded: bytes) -> Head | None:
    """Returns the rate, channels and samples in a clip's header; None if it is not a clip or is cut short."""
    try:
        if encoded[:4] in (b"RIFF", b"RF64") and encoded[8:12] == b"WAVE":
            return _wav(encoded)
        return _flac(encoded) if encoded.startswith(b"fLaC") else None
    except struct.error:
        return None


def _wav(encoded: bytes) -> Head | None:
    at, head, data_bytes = 12, None, None
    if encoded.startswith(b"RF64"):
        if encoded[12:16] != b"ds64":
            return None
        _, data_bytes, _, _ = struct.unpack_from("<QQQI", encoded, 20)
    while at + 8 <= len(encoded):
        name, size = struct.unpack_from("<4sI", encoded, at)
        at += 8
        if name == b"data" and size == _UNTOLD:
            size = len(encoded) - at if data_bytes is None else data_bytes
        if at + size > len(encoded):
            return None
        if name == b"fmt ":
            if head is not None or size < 16:
                return None
            tag, channels, rate, _, of_frame, bits = struct.unpack_from("<HHIIHH", encoded, at)
            format_ = struct.unpack_from("<H", encoded, at + 24)[0] if tag == _EXTENSIBLE and size >= 40 else tag
            if bits not in _BITS.get(format_, ()) or not of_frame or of_frame != channels * bits // 8:
                return None
            head = rate, channels, of_frame
        if name == b"data":
            return None if head is None else (head[0], head[1], size // head[2])
        at += size + size % 2
    return None


def _flac(encoded: bytes) -> Head | None:
    at, head, last, block = 4, None, False, 0
    while not last:
        (header,) = struct.unpack_from(">I", encoded, at)
        last, kind, size = bool(header >> 31), header >> 24 & 0x7F, header & 0xFFFFFF
        if (head is None) != (kind == 0) or (head is None and size != 34) or at + 4 + size >= len(encoded):
            return None
        if head is None:
            (form,) = struct.unpack_from(">Q", encoded, at + 14)
            head = form >> 44, (form >> 41 & 7) + 1, form & 0xFFFFFFFFF
            (block,) = struct.unpack_from(">H", encoded, at + 6)
        at += 4 + size
    assert head is not None
    return head if head[2] else (*head[:2], _flac_count(encoded[at:], block))


def _sum_of(bits: int, polynomial: int, content: bytes) -> int:
    """The cyclic redundancy check of so many bits."""
    total = 0
    for byte in content:
        total ^= byte << bits - 8
        for _ in range(8):
            total = (total << 1) ^ (polynomial if total >> bits - 1 else 0)
            total &= (1 << bits) - 1
    return total


def _flac_count(frames: bytes, block: int) -> int:
    """Samples of all channels' frames, by the last one's head, from the end on; 0 where none is whole."""
    if len(frames) < 8:
        return 0
    body, heads = frames[:-2], 0
    for at in reversed(range(len(body))):
        samples = _flac_frame(body[at:], block) if body[at] == 0xFF else None
        if samples is None:
            continue
        heads += 1
        if _sum_of(16, 0x8005, body[at:]) == int.from_bytes(frames[-2:], "big"):
            return samples & 0xFFFFFFFFF
        if heads == _MOST_HEADS:
            break
    return 0


def _flac_frame(body: bytes, block: int) -> int | None:
    """Samples up to the end of the frame whose head this begins with; None where it is none."""
    if len(body) < 6 or body[1] & 0xFE != 0xF8:
        return None
    length, rate = body[2] >> 4, body[2] & 15
    if length == 0 or rate == 15 or body[3] >> 4 > 10 or body[3] & 1:
        return None
    ones = 8 - (body[4] ^ 0xFF).bit_length()
    if ones in (1, 8):
        return None
    at = 4 + max(ones, 1)
    end = at + {6: 1, 7: 2}.get(length, 0) + {12: 1, 13: 2, 14: 2}.get(rate, 0)
    if len(body) <= end or any(byte >> 6 != 2 for byte in body[5:at]) or _sum_of(8, 7, body[:end]) != body[end]:
        return None
    number = body[4] & (0x7F >> ones)
    for byte in body[5:at]:
        number = number << 6 | byte & 0x3F
    usual = {1: 192, 2: 576, 3: 1152, 4: 2304, 5: 4608}.get(length, 256 << max(length - 8, 0))
    samples = int.from_bytes(body[at : at + length - 5], "big") + 1 if length in (6, 7) else usual
    return (number if body[1] & 1 else number * block) + samples


ORACLE = Audio()
