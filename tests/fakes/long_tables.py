"""How much of a long table a run takes: every sixth entry, in the short loop (-m "not kafka") every 36th and of each
test's own entries six, and with `--every 1` all of it.

Set before tests are collected.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

SHORT = "not kafka"
MOST = 6
_step = 1
_is_short = False


def set_for(selection: str, every: int | None) -> None:
    """By what -m selects, where `every` does not say it."""
    global _step, _is_short
    _is_short = SHORT in selection and "long" not in selection and every is None
    _step = every or (36 if _is_short else 6)


def some(entries: Iterable[T]) -> list[T]:
    """Of those of a long table, in their order, the first always."""
    return list(itertools.islice(entries, 0, None, _step))


def left_out(names: Iterable[str]) -> set[str]:
    """Of the tests of these names what the short loop leaves out: of one with many entries all but MOST of them."""
    if not _is_short:
        return set()
    families: dict[str, list[str]] = {}
    for name in names:
        families.setdefault(name.partition("[")[0], []).append(name)
    return {
        name
        for family in families.values()
        for at, name in enumerate(family)
        if len(family) > MOST and at * MOST // len(family) == (at - 1) * MOST // len(family)
    }


def whole_tables() -> bool:
    return _step == 1


def examples(whole: int) -> int:
    """Of generated ones so many."""
    return max(10, whole // _step)
