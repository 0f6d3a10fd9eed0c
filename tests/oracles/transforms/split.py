"""One part of a text."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.columns.transforms.transform import Use
from tests.oracles.transforms import Cell


def meaning(use: Use, cells: Sequence[Cell], given: Sequence[bool]) -> list[Cell]:
    if cells[0] is None:
        return [None]
    parts, part = str(cells[0]).split(use.given["by"]), use.given["part"]
    return [parts[part] or None if -len(parts) <= part < len(parts) else None]
