"""MurmurHash3 of 64 bits in plain Python; that of 32 bits is in tests/fakes/numpy_predict.py."""

from __future__ import annotations

_MASK64 = 2**64 - 1


def murmur3_64(text: bytes, seed: int = 0) -> int:
    """The first 64 bits of MurmurHash3_x64_128."""
    h1 = h2 = seed
    whole = len(text) & ~15
    for at in range(0, whole, 16):
        h1 = _rotated(h1 ^ _first(text[at : at + 8]), 27) + h2 & _MASK64
        h1 = h1 * 5 + 0x52DCE729 & _MASK64
        h2 = _rotated(h2 ^ _second(text[at + 8 : at + 16]), 31) + h1 & _MASK64
        h2 = h2 * 5 + 0x38495AB5 & _MASK64
    h1 ^= _first(text[whole : whole + 8]) ^ len(text)
    h2 ^= _second(text[whole + 8 :]) ^ len(text)
    h1 = h1 + h2 & _MASK64
    h2 = h2 + h1 & _MASK64
    return _finished(h1) + _finished(h2) & _MASK64


def _first(part: bytes) -> int:
    return _rotated(int.from_bytes(part, "little") * 0x87C37B91114253D5 & _MASK64, 31) * 0x4CF5AD432745937F & _MASK64


def _second(part: bytes) -> int:
    return _rotated(int.from_bytes(part, "little") * 0x4CF5AD432745937F & _MASK64, 33) * 0x87C37B91114253D5 & _MASK64


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK64


def _finished(h: int) -> int:
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & _MASK64
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & _MASK64
    return h ^ h >> 33
