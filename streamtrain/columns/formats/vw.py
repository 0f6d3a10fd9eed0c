"""Vowpal Wabbit's text: a line is a row, label, importance and tag, then namespaces of features behind bars.

A feature's index is VW's own, so that `vw --invert_hash` shows the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from streamtrain.columns.formats import sparse_text
from streamtrain.columns.formats.parsed import Pairs, Parsed, Unusable
from streamtrain.columns.kinds.kind import Wrong
from streamtrain.columns.kinds.parsed import decimal
from streamtrain.columns.schema import Schema
from streamtrain.columns.vw_hash import MOST_BITS, vw_hash, vw_seed
from streamtrain.compute.options import Whole

HELP = "Vowpal Wabbit's text: a line a row, label, importance, tag, namespaces of features, with VW's own hash"
CELLS = ("value", "pairs")
NAMESPACES = True
OF_COLUMNS = {"vw_bits": "bits"}   # so that a program's names are VW's too
OPTIONS = {"bits": Whole(least=1, most=MOST_BITS, default=18, help="of an index, as vw -b: buckets are so many")}
EXAMPLES = [
    b"1 |f 9:6.27e-02 14:0.5 words more:2\n",
    b"-1 2.5 'tag|a:2 x:3 y |b z:.5 7 |c\r\n\r\n0 tag| p 3:1 :2 :3\n1 1 0.5 |\xc3\xa9 \xc3\xa9:1e0 0:0\n",
    b"1 no bar\n |a x:n/a y\n1 |a:bad x\n1 |a x: y\n0 |a x:1e99\nspam |a x\n1 |a b:1|c d:2\n\xff |a b\n| x\n|x\n",
    b"\n",
]
_WORD = re.compile(rb"[^ :|\t]*")
_VALUE = re.compile(rb"[^ |\t]*")


def encode(schema: Schema, columns: Mapping[str, Any], bits: int = 18) -> bytes:
    """A line for each row of `columns`, arrays or lists of one length; features by index."""
    return sparse_text.encode(schema, columns, _line)


def encode_rows(schema: Schema, rows: Sequence[Any], bits: int = 18) -> bytes:
    """A line for each row, a dict."""
    return sparse_text.encode_rows(schema, rows, _line)


def mistakes(schema: Schema, bits: int = 18) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of columns that no line gives."""
    yield from sparse_text.mistakes(schema, "vw", (sparse_text.WEIGHT, sparse_text.TAG))
    for name, column in sparse_text.features(schema).items():
        if (column.buckets or 0) < 1 << bits:
            got = f"{column.buckets:,}"
            yield name, f"buckets: expected {1 << bits:,} or more for indexes of {bits} bits, got {got}"


def parse(record: bytes, bits: int = 18) -> Parsed:
    """The record's values, slowly."""
    return sparse_text.parse(record, lambda line: _row(line, (1 << bits) - 1))


def _line(label: str, weight: str, tag: str, features: list[Any]) -> str:
    head = label + (f" {weight}" if label and weight else "") + (f" '{tag}" if tag else "")
    return head + ("".join(_written(*each) for each in features) or " |")


def _written(name: str | None, pairs: list[tuple[str, str]]) -> str:
    """Pairs in a namespace: of an index what is that index in it."""
    shift = 2**32 - vw_seed(name) if name else 0
    words = ((str(int(word) + shift) if _is_index(word) else word, value) for word, value in pairs)
    return f" |{name or ''}" + "".join(f" {word}:{value}" for word, value in words)


def _is_index(word: str) -> bool:
    return word.isascii() and word.isdigit() and int(word) < 2**32


def _row(line: bytes, mask: int) -> Any:
    head, bar, rest = line.partition(b"|")
    if not bar:
        return Unusable("no bar")
    words = re.split(rb"[ \t]+", head.lstrip(b" \t"))
    at_bar = [words.pop()] if words and words[-1] else []
    tagged = next((at for at, word in enumerate(words) if word.startswith(b"'")), len(words))
    tag = [*words[tagged : tagged + 1], *at_bar, b""][0].removeprefix(b"'")
    label, weight = [*words[:tagged], b"", b""][:2]
    parts = (sparse_text.LABEL, label), (sparse_text.WEIGHT, weight), (sparse_text.TAG, tag)
    features = sparse_text.Features()
    for part in rest.split(b"|"):
        features.namespaces.append((_features(part, mask, features), len(features)))
    cells: list[tuple[str, Any]] = [(name, sparse_text.text(word)) for name, word in parts if word or name != "tag"]
    return Pairs([*cells, (sparse_text.FEATURES, features)])


def _features(part: bytes, mask: int, features: list[Any]) -> bytes:
    """Adds the features of a namespace, up to one that cannot be read, and returns the namespace's name."""
    space, seed, factor, at, nameless = b"", 0, np.float32(1), 0, 0
    if part and part[:1] not in (b" ", b"\t"):
        space, at = _next(_WORD, part, 0)
        seed = vw_hash(space, 0) & 0xFFFFFFFF
        if part[at : at + 1] == b":":
            word, at = _next(_VALUE, part, at + 1)
            if (factor := _value(word)) is None:
                features.append(Unusable("no number"))
                return space
    while (at := _behind_spaces(part, at)) < len(part):
        name, at = _next(_WORD, part, at)
        index, value = (vw_hash(name, seed) if name else seed + nameless), np.float32(1)
        nameless += not name
        if part[at : at + 1] == b":":
            word, at = _next(_VALUE, part, at + 1)
            if (value := _value(word)) is None:
                features.append(Unusable("no number"))
                return space
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            value = value * factor
        if value != 0:
            features.append([index & mask, float(value)])
    return space


def _next(pattern: re.Pattern[bytes], part: bytes, at: int) -> tuple[bytes, int]:
    found = pattern.match(part, at)
    assert found is not None
    return found[0], found.end()


def _behind_spaces(part: bytes, at: int) -> int:
    while part[at : at + 1] in (b" ", b"\t"):
        at += 1
    return at


def _value(word: bytes) -> Any:
    try:
        with np.errstate(over="ignore", under="ignore"):
            return np.float32(decimal(word.decode()))
    except (Wrong, UnicodeDecodeError):
        return None
