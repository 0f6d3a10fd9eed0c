"""A share of keys, by their hash."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.columns.transforms.transform import Use
from tests.oracles.transforms import Cell
from tests.oracles.transforms.hash import hash_of


def meaning(use: Use, cells: Sequence[Cell], given: Sequence[bool]) -> list[Cell]:
    found = hash_of(use.name, cells[0], 32)
    return [None if found is None else float(found < round(use.given["share"] * 2**32))]
