"""A text in small letters."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.columns.transforms.transform import Use
from tests.oracles.kinds.text import small
from tests.oracles.transforms import Cell


def meaning(use: Use, cells: Sequence[Cell], given: Sequence[bool]) -> list[Cell]:
    return [None if cells[0] is None else small(str(cells[0]))]
