"""Several categories as one: the hash of their hashes."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain import _native
from streamtrain.columns.kinds.category import hash_seed
from streamtrain.columns.transforms.transform import HASH, Use
from tests.oracles.transforms import Cell
from tests.oracles.transforms.hash import hash_of


def meaning(use: Use, cells: Sequence[Cell], given: Sequence[bool]) -> list[Cell]:
    parts = [
        cell if source.holds == HASH else hash_of(source.name, cell, source.hash_bits)
        for source, cell in zip(use.sources, cells, strict=True)
    ]
    together = [part.to_bytes(8, "little") for part in parts if isinstance(part, int)]
    if len(together) < len(parts):
        return [None]
    return [_native.murmur3(b"".join(together), hash_seed(use.name), use.hash_bits)]
