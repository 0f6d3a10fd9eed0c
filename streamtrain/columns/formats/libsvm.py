"""libsvm records: a line is a row, a label and then index:value pairs; a # begins a comment, qid is passed over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from streamtrain.columns.formats import sparse_text
from streamtrain.columns.schema import Schema

HELP = "libsvm text: a line a row, a label and index:value pairs"
CELLS = ("value", "pairs")
LINES = True
EXAMPLES = [
    b"1 1:0.5 3:-2e-1 40:1\n",
    b"0 2:1 7:.5 # a comment 9:1\r\n\r\n-1 qid:3 1:+1 1:2\n1\n2.5 3:4\n",
    b"1 0:1 99999999999999999999:1\n0 1:n/a\n1 1:\n0 :1\n1 1:1e99\n3:1\n1 99:1 x\n",
    b"\n",
]


def encode_rows(schema: Schema, rows: Sequence[Any]) -> bytes:
    """A line for each row, a dict."""
    return sparse_text.encode_rows("libsvm", schema, rows)


def mistakes(schema: Schema) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of columns that no line gives."""
    yield from sparse_text.mistakes(schema, "libsvm", (sparse_text.WEIGHT,))  # which no line gives and `missing` does


def head(line: bytes) -> list[tuple[str, bytes]]:
    """Returns the label, the first word; empty where that is a pair."""
    words = line.partition(b"#")[0].replace(b"\t", b" ").lstrip(b" ").split(b" ", 1)
    return [(sparse_text.LABEL, b"" if b":" in words[0] else words[0])]
