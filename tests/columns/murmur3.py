"""MurmurHash3_x86_32 in plain Python: the stated hash of categories, for readers and the slow reference."""

from __future__ import annotations

_MASK = 0xFFFFFFFF


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


def bucket(column: str, text: str, buckets: int) -> int:
    """The bucket of a category's text: its hash, seeded with the column name's own hash, modulo the buckets."""
    return murmur3(text.encode(), murmur3(column.encode())) % buckets


def _mix(k: int) -> int:
    k = k * 0xCC9E2D51 & _MASK
    k = (k << 15 | k >> 17) & _MASK
    return k * 0x1B873593 & _MASK
