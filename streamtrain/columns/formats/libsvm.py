"""libsvm records: a line is a row, a label and then index:value pairs; a # begins a comment, qid is passed over."""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain.columns.formats import sparse_text
from streamtrain.columns.schema import Schema

HELP = "libsvm text: a line a row, a label and index:value pairs"
CELLS = ("value", "pairs")
LINES = True


def mistakes(schema: Schema) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of columns that no line gives."""
    yield from sparse_text.mistakes(schema, "libsvm", (sparse_text.WEIGHT,))  # which no line gives and `missing` does
