"""libsvm records: a line is a row, a label and then index:value pairs; a # begins a comment, qid is passed over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamtrain.columns.formats import sparse_text
from streamtrain.columns.formats.parsed import Pairs, Parsed, Unusable
from streamtrain.columns.kinds.kind import Wrong
from streamtrain.columns.kinds.parsed import decimal
from streamtrain.columns.schema import Schema

HELP = "libsvm text: a line a row, a label and index:value pairs"
CELLS = ("value", "pairs")
EXAMPLES = [
    b"1 1:0.5 3:-2e-1 40:1\n",
    b"0 2:1 7:.5 # a comment 9:1\r\n\r\n-1 qid:3 1:+1 1:2\n1\n2.5 3:4\n",
    b"1 0:1 99999999999999999999:1\n0 1:n/a\n1 1:\n0 :1\n1 1:1e99\n3:1\n1 99:1 x\n",
    b"\n",
]
_PAIR = re.compile(rb"([0-9]{1,18}):(.+)", re.DOTALL)


def encode(schema: Schema, columns: Mapping[str, Any]) -> bytes:
    """A line for each row of `columns`, arrays or lists of one length."""
    return sparse_text.encode(schema, columns, _line)


def encode_rows(schema: Schema, rows: Sequence[Any]) -> bytes:
    """A line for each row, a dict."""
    return sparse_text.encode_rows(schema, rows, _line)


def mistakes(schema: Schema) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of columns that no line gives."""
    yield from sparse_text.mistakes(schema, "libsvm", (sparse_text.WEIGHT,))  # which no line gives and `missing` does


def parse(record: bytes) -> Parsed:
    """The record's values, slowly."""
    return sparse_text.parse(record, _row)


def _line(label: str, weight: str, tag: str, features: list[Any]) -> str:
    return label + "".join(f" {index}:{value}" for _, pairs in features for index, value in pairs)


def _row(line: bytes) -> Pairs:
    line = line.partition(b"#")[0].lstrip(b" \t")
    words = [word for word in re.split(rb"[ \t]", line) if word]
    label = words.pop(0) if words and b":" not in words[0] else b""
    features = sparse_text.Features()
    features += [_pair(word) for word in words if _PAIR.fullmatch(word) or not word.startswith(b"qid:")]
    features.namespaces.append((b"", len(features)))
    return Pairs([(sparse_text.LABEL, sparse_text.text(label)), (sparse_text.FEATURES, features)])


def _pair(word: bytes) -> Any:
    found = _PAIR.fullmatch(word)
    try:
        return [int(found[1]), decimal(found[2].decode())] if found else Unusable("no pair")
    except (Wrong, UnicodeDecodeError):
        return Unusable("no number")
