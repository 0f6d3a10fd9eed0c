"""The part of a text that a pattern finds, by Python's `re`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from streamtrain.columns.transforms.transform import Use
from tests.oracles.transforms import Cell

_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)


def meaning(use: Use, cells: Sequence[Cell], given: Sequence[bool]) -> list[Cell]:
    if cells[0] is None:
        return [None]
    found = searching(use.given["pattern"]).search(str(cells[0]))
    return [found[use.given["group"]] or None if found else None]


@cache
def searching(pattern: str) -> re.Pattern[str]:
    """Returns Python's own pattern: $ is a text's end alone, and classes are of ASCII."""
    return re.compile(_PART.sub(lambda part: r"\Z" if part[0] == "$" else part[0], pattern), re.ASCII)
