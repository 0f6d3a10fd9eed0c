"""Words that stand for a missing cell in texts of numbers and times: native/decode/missing_words.h, and a job's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamtrain import _native
from streamtrain.columns.column import Column

_WORDS = frozenset(_native.MISSING_WORDS)


def is_missing(cell: Any, more: Sequence[str] = ()) -> bool:
    """Returns whether a cell is a word for a missing value, with or without spaces around it, or nothing but spaces."""
    if not isinstance(cell, str):
        return False
    word = cell.strip(" ")
    return not word or word in _WORDS or word in more


def native_words(column: Column, more: Sequence[str]) -> dict[str, Any]:
    """A job's own words, as the native half takes them beside a column's options."""
    return {"missing_words": list(more)} if more and column.entry.has_missing_words(column) else {}
