"""How much of a long table a run takes: every third entry, in the short loop (-m "not kafka") every eighth, and with
`--every 1` all of it.

Set before tests are collected.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

SHORT = "not kafka"
_step = 1


def set_for(selection: str, every: int | None) -> None:
    """By what -m selects, where `every` does not say it."""
    global _step
    _step = every or (8 if SHORT in selection else 3)


def some(entries: Iterable[T]) -> Iterator[T]:
    """Of those of a long table, in their order, the first always."""
    return itertools.islice(entries, 0, None, _step)


def whole_tables() -> bool:
    return _step == 1


def examples(whole: int) -> int:
    """Of generated ones so many."""
    return max(10, whole // _step)
