"""The share of a long table that a run takes: each twentieth entry, every Nth with `--every N` (set before
collection), all in `full`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

EVERY = 20
_step = EVERY


def set_step(step: int) -> None:
    global _step
    _step = step


def some(entries: Iterable[T]) -> list[T]:
    """Returns every Nth entry of a long table, in order, always with the first."""
    return list(itertools.islice(entries, 0, None, _step))


def whole_tables() -> bool:
    return _step == 1


def examples(whole: int) -> int:
    """Returns how many generated examples to try: the Nth part, at least 10."""
    return max(10, whole // _step)


def in_full_all(name: str = "take") -> Any:
    """Gives a test an argument that takes of a long table some entries; and in `full`, as another test, all of them."""
    return pytest.mark.parametrize(name, [some, pytest.param(list, marks=pytest.mark.full)], ids=["some", "all"])
