"""A text, or a whole number's, hashed under a column's name."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain import _native
from streamtrain.columns.kinds.category import hash_seed
from streamtrain.columns.transforms.transform import Use
from tests.oracles.kinds._numbers import whole
from tests.oracles.transforms import Cell


def meaning(use: Use, cells: Sequence[Cell], given: Sequence[bool]) -> list[Cell]:
    return [hash_of(use.name, cells[0], use.hash_bits)]


def hash_of(name: str, cell: Cell, bits: int) -> int | None:
    """Returns the hash of a cell's text under the name of a column; None for a fraction."""
    text = cell if cell is None or isinstance(cell, str) else whole(cell)
    return None if text is None else _native.murmur3(str(text).encode(), hash_seed(name), bits)
