"""Vowpal Wabbit's text: a line is a row, label, importance and tag, then namespaces of features behind bars.

A feature's index is VW's own, so that `vw --invert_hash` shows the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain.columns.formats import sparse_text
from streamtrain.columns.kinds.sparse import MOST_BITS
from streamtrain.columns.schema import Schema
from streamtrain.compute.options import Whole

HELP = "Vowpal Wabbit's text: a line a row, label, importance, tag, namespaces of features, with VW's own hash"
CELLS = ("value", "pairs")
LINES = True
NAMESPACES = True
OF_COLUMNS = {"vw_bits": "bits"}   # so that a program's names are VW's too
OPTIONS = {"bits": Whole(least=1, most=MOST_BITS, default=18, help="of an index, as vw -b: buckets are so many")}


def mistakes(schema: Schema, bits: int = 18) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of columns that no line gives."""
    yield from sparse_text.mistakes(schema, "vw", (sparse_text.WEIGHT, sparse_text.TAG))
    for name, column in sparse_text.features(schema).items():
        if (column.buckets or 0) < 1 << bits:
            got = f"{column.buckets:,}"
            yield name, f"buckets: expected {1 << bits:,} or more for indexes of {bits} bits, got {got}"
