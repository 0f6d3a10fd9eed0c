"""Examples of Vowpal Wabbit's lines; tests/oracles/sparse_text.py reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamtrain.columns.schema import Schema
from tests.oracles import sparse_text

EXAMPLES = [
    b"1 |f 9:6.27e-02 14:0.5 words more:2\n",
    b"-1 2.5 'tag|a:2 x:3 y |b z:.5 7 |c\r\n\r\n0 tag| p 3:1 :2 :3\n1 1 0.5 |\xc3\xa9 \xc3\xa9:1e0 0:0\n",
    b"1 no bar\n |a x:n/a y\n1 |a:bad x\n1 |a x: y\n0 |a x:1e99\nspam |a x\n1 |a b:1|c d:2\n\xff |a b\n| x\n|x\n",
    b"\n",
]


def encode_rows(schema: Schema, rows: Sequence[Any], bits: int = 18) -> bytes:
    """A line for each row, a dict."""
    return sparse_text.encode_rows("vw", schema, rows)
