"""Vowpal Wabbit's hash of names, slowly: `--hash strings`."""

from __future__ import annotations

from streamtrain import _native

MOST_BITS = 30


def vw_hash(name: bytes, seed: int) -> int:
    """A name of digits is that number, any other one is hashed, both from the seed on."""
    if all(48 <= letter < 58 for letter in name):
        return (int(name or b"0") + seed) % 2**64
    return _native.murmur3(name, seed)


def vw_seed(namespace: str) -> int:
    """Returns the seed of the names in a namespace."""
    return vw_hash(namespace.encode(), 0) & 0xFFFFFFFF
