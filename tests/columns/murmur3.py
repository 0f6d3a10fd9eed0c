"""MurmurHash3 in plain Python: the stated hash of categories, for readers and the slow reference."""

from __future__ import annotations

_MASK = 0xFFFFFFFF
_MASK64 = 2**64 - 1


def murmur3(text: bytes, seed: int = 0) -> int:
    """The 32-bit hash of `text`."""
    h = seed
    whole = len(text) & ~3
    for at in range(0, whole, 4):
        h ^= _mix(int.from_bytes(text[at : at + 4], "little"))
        h = (((h << 13 | h >> 19) & _MASK) * 5 + 0xE6546B64) & _MASK
    if whole < len(text):
        h ^= _mix(int.from_bytes(text[whole:], "little"))
    h ^= len(text)
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & _MASK
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & _MASK
    return h ^ (h >> 16)


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


def bucket(column: str, text: str, buckets: int) -> int:
    """The bucket of a category's text: its hash, seeded with the column name's own hash, modulo the buckets."""
    return murmur3(text.encode(), murmur3(column.encode())) % buckets


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


def _mix(k: int) -> int:
    k = k * 0xCC9E2D51 & _MASK
    k = (k << 15 | k >> 17) & _MASK
    return k * 0x1B873593 & _MASK
