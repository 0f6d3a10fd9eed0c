"""How much of a long table a run takes: every third entry, in the short loop (-m "not kafka") every 24th, and with
`--every 1` all of it.

Set before tests are collected.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

SHORT = "not kafka"
_step = 1
_is_short = False


def set_for(selection: str, every: int | None) -> None:
    """By what -m selects, where `every` does not say it."""
    global _step, _is_short
    _is_short = SHORT in selection and every is None
    _step = every or (24 if _is_short else 3)


def some(entries: Iterable[T]) -> list[T]:
    """Of those of a long table, in their order, the first always."""
    return list(itertools.islice(entries, 0, None, _step))


def briefly(entries: Iterable[T]) -> list[T]:
    """All of a table, but in the short loop as some()."""
    return some(entries) if _is_short else list(entries)


def whole_tables() -> bool:
    return _step == 1


def examples(whole: int) -> int:
    """Of generated ones so many."""
    return max(10, whole // _step)
