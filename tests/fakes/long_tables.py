"""How much of a long table a run takes: all of it, or with -m "not kafka", the short loop, every eighth entry.

Set before tests are collected. Whole tables are what a bare pytest runs, so what .ci/run decides by.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

SHORT = "not kafka"
_step = 1


def set_for(selection: str) -> None:
    """By what -m selects."""
    global _step
    _step = 8 if SHORT in selection else 1


def some(entries: Iterable[T]) -> Iterator[T]:
    """Of those of a long table, in their order, the first always."""
    return itertools.islice(entries, 0, None, _step)


def whole_tables() -> bool:
    return _step == 1


def examples(whole: int) -> int:
    """Of generated ones so many."""
    return max(10, whole // _step)
