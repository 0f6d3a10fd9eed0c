"""Examples of libsvm lines; tests/oracles/sparse_text.py reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamtrain.columns.schema import Schema
from tests.oracles import sparse_text

EXAMPLES = [
    b"1 1:0.5 3:-2e-1 40:1\n",
    b"0 2:1 7:.5 # a comment 9:1\r\n\r\n-1 qid:3 1:+1 1:2\n1\n2.5 3:4\n",
    b"1 0:1 99999999999999999999:1\n0 1:n/a\n1 1:\n0 :1\n1 1:1e99\n3:1\n1 99:1 x\n",
    b"\n",
]


def encode_rows(schema: Schema, rows: Sequence[Any]) -> bytes:
    """A line for each row, a dict."""
    return sparse_text.encode_rows("libsvm", schema, rows)
