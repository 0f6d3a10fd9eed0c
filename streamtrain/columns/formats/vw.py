"""Vowpal Wabbit's text: a line is a row, label, importance and tag, then namespaces of features behind bars.

A feature's index is VW's own, so that `vw --invert_hash` shows the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

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
EXAMPLES = [
    b"1 |f 9:6.27e-02 14:0.5 words more:2\n",
    b"-1 2.5 'tag|a:2 x:3 y |b z:.5 7 |c\r\n\r\n0 tag| p 3:1 :2 :3\n1 1 0.5 |\xc3\xa9 \xc3\xa9:1e0 0:0\n",
    b"1 no bar\n |a x:n/a y\n1 |a:bad x\n1 |a x: y\n0 |a x:1e99\nspam |a x\n1 |a b:1|c d:2\n\xff |a b\n| x\n|x\n",
    b"\n",
]


def encode_rows(schema: Schema, rows: Sequence[Any], bits: int = 18) -> bytes:
    """A line for each row, a dict."""
    return sparse_text.encode_rows("vw", schema, rows)


def mistakes(schema: Schema, bits: int = 18) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of columns that no line gives."""
    yield from sparse_text.mistakes(schema, "vw", (sparse_text.WEIGHT, sparse_text.TAG))
    for name, column in sparse_text.features(schema).items():
        if (column.buckets or 0) < 1 << bits:
            got = f"{column.buckets:,}"
            yield name, f"buckets: expected {1 << bits:,} or more for indexes of {bits} bits, got {got}"


def head(line: bytes) -> list[tuple[str, bytes]]:
    """Returns label and weight, empty where they are not there, and the tag where it is: in front of the first bar."""
    words = re.split(rb"[ \t]+", line.partition(b"|")[0].lstrip(b" \t"))
    at_bar = words.pop()
    tagged = next((at for at, word in enumerate(words) if word.startswith(b"'")), len(words))
    tag = [*words[tagged : tagged + 1], at_bar][0].removeprefix(b"'")
    label, weight = [*words[:tagged], b"", b""][:2]
    return [(sparse_text.LABEL, label), (sparse_text.WEIGHT, weight), *([(sparse_text.TAG, tag)] if tag else [])]
