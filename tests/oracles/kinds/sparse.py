"""Pairs of an index, or a name hashed into one, and a number."""

from __future__ import annotations

from typing import Any

from streamtrain.columns.column import Column
from tests.oracles.kinds import Oracle, Wrong
from tests.oracles.kinds._numbers import float32, whole
from tests.oracles.kinds.category import hash_of, kept


class Sparse(Oracle):
    def meaning_of_list(self, name: str, column: Column, loss: str, cell: list[Any]) -> list[Any]:
        pairs = [_pair(name, column, each) for each in cell]
        return [kept(column, [index for index, _ in pairs]), kept(column, [scale for _, scale in pairs])]

    def meaning_of_missing(self, name: str, column: Column, loss: str) -> Any:
        return [[], []]


def _pair(name: str, column: Column, given: Any) -> tuple[int, Any]:
    """An index and a value. Names that Vowpal Wabbit hashes, those of a column with `vw_bits`, come as indexes."""
    if not isinstance(given, list) or len(given) != 2 or None in given:
        raise Wrong
    key, value = given
    if isinstance(key, str):
        is_index = key.isascii() and key.isdigit()
        index = int(key) if is_index else hash_of(name, column, key) % column.buckets
    else:
        index = None if isinstance(key, bool) else whole(key)
    if index is None or not 0 <= index < column.buckets:
        raise Wrong
    return index, float32(value)


ORACLE = Sparse()
