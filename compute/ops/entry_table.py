"""One of the tables of a batch's entries, as kernels take it: native/base/bucket.h."""

from __future__ import annotations

PLACE = 5   # numbers that say of a table what place_of() does


def place_of(column: int, buckets: int, dim: int, at: int, before: int) -> list[int]:
    """A table as kernels take it: the column of its categories, its rows and their numbers, the first of its
    columns in the input matrix, and how many numbers of an entry's gradient belong to the tables before it."""
    return [column, buckets, dim, at, before]
