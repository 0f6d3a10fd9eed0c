"""The meaning of VW's and libsvm's lines in slow plain Python: the native decoder is tested against it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.columns.column import Column
from streamtrain.columns.formats import Format, is_lines
from streamtrain.columns.formats.parsed import Pairs, Unusable
from streamtrain.columns.formats.sparse_text import FEATURES, LABEL, TAG, WEIGHT, features, names
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.oracles import records
from tests.oracles.kinds import Wrong
from tests.oracles.kinds._numbers import decimal
from tests.oracles.parsed import Parsed, registry_frame

_PAIR = re.compile(rb"([0-9]{1,18}):(.+)", re.DOTALL)
_WORD = re.compile(rb"[^ :|\t]*")
_VALUE = re.compile(rb"[^ |\t]*")


def parse(format: Format, record: bytes, headers: Iterable[tuple[str, bytes | None]] = ()) -> Parsed:
    """Returns the values of a record of any format; the rows of lines have the keys of their parts."""
    if not is_lines(format):
        return records.parse(format, record, headers)
    name, bits = (format, 18) if isinstance(format, str) else (format["name"], format.get("bits", 18))
    row: Callable[[bytes], Any] = _of_libsvm if name == "libsvm" else lambda line: _of_vw(line, (1 << bits) - 1)
    parsed = Parsed(broken=registry_frame(record), written=True, maps_of_arrays=False)
    if parsed.broken is None:
        lines = [line for piece in record.split(b"\n") if (line := piece.lstrip(b"\r"))]
        parsed.many = True
        parsed.rows = [row(line.removesuffix(b"\r")) for line in lines]
    return parsed


def named(schema: Schema, row: Any) -> Any:
    """A row of a line by the columns' names, its tag where that stands; what is no column's is left out."""
    if not isinstance(row, Pairs):
        return row
    by, wide, given = names(schema), features(schema), dict(row)
    others = frozenset(name.encode() for column in wide.values() for name in column.namespaces or ())
    cells = [(part if part == TAG else by[part], value) for part, value in row if part in by]
    return Pairs([*cells, *((name, given[FEATURES].of(column, others)) for name, column in wide.items())])


def vw_hash(name: bytes, seed: int) -> int:
    """Returns a name's hash: a name of digits is that number, any other one is hashed, both from the seed on."""
    if all(48 <= character < 58 for character in name):
        return (int(name or b"0") + seed) % 2**64
    return _native.murmur3(name, seed)


def vw_seed(namespace: str) -> int:
    """Returns the seed of the names in a namespace."""
    return vw_hash(namespace.encode(), 0) & 0xFFFFFFFF


def by_index(column: Column, pairs: list[Any]) -> list[Any]:
    """Returns pairs whose names are indexes where Vowpal Wabbit hashes a column's names: in its first namespace."""
    bits = getattr(column, "vw_bits", None)
    if bits is None:
        return pairs
    seed, mask = vw_seed((column.namespaces or [""])[0]), (1 << bits) - 1
    return [_indexed(pair, seed, mask) for pair in pairs]


def _indexed(pair: Any, seed: int, mask: int) -> Any:
    is_name = isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)
    if not is_name or (pair[0].isascii() and pair[0].isdigit()):
        return pair
    return [vw_hash(pair[0].encode(), seed) & mask, pair[1]]


class _Features(list[Any]):
    """A line's, side by side; of each of its namespaces, in order, the name and how many there are up to its end."""

    def __init__(self) -> None:
        super().__init__()
        self.namespaces: list[tuple[bytes, int]] = []

    def of(self, column: Column, others: frozenset[bytes]) -> list[Any]:
        """Returns the features that a column takes, beside columns of the namespaces `others`."""
        names = None if column.namespaces is None else {name.encode() for name in column.namespaces}
        found, start = [], 0
        for name, end in self.namespaces:
            if name in names if names is not None else name not in others:
                found += self[start:end]
            start = end
        return found


def _of_libsvm(line: bytes) -> Pairs:
    line = line.partition(b"#")[0].lstrip(b" \t")
    words = [word for word in re.split(rb"[ \t]", line) if word]
    label = words.pop(0) if words and b":" not in words[0] else b""
    found = _Features()
    found += [_pair(word) for word in words if _PAIR.fullmatch(word) or not word.startswith(b"qid:")]
    found.namespaces.append((b"", len(found)))
    return Pairs([(LABEL, text(label)), (FEATURES, found)])


def _pair(word: bytes) -> Any:
    found = _PAIR.fullmatch(word)
    try:
        return [int(found[1]), decimal(found[2].decode())] if found else Unusable("no pair")
    except (Wrong, UnicodeDecodeError):
        return Unusable("no number")


def _of_vw(line: bytes, mask: int) -> Any:
    head, bar, rest = line.partition(b"|")
    if not bar:
        return Unusable("no bar")
    words = re.split(rb"[ \t]+", head.lstrip(b" \t"))
    at_bar = [words.pop()] if words and words[-1] else []
    tagged = next((at for at, word in enumerate(words) if word.startswith(b"'")), len(words))
    tag = [*words[tagged : tagged + 1], *at_bar, b""][0].removeprefix(b"'")
    label, weight = [*words[:tagged], b"", b""][:2]
    parts = (LABEL, label), (WEIGHT, weight), (TAG, tag)
    found = _Features()
    for part in rest.split(b"|"):
        found.namespaces.append((_features(part, mask, found), len(found)))
    cells: list[tuple[str, Any]] = [(name, text(word)) for name, word in parts if word or name != "tag"]
    return Pairs([*cells, (FEATURES, found)])


def _features(part: bytes, mask: int, found: list[Any]) -> bytes:
    """Adds the features of a namespace, up to one that cannot be read, and returns the namespace's name."""
    space, seed, factor, at, nameless = b"", 0, np.float32(1), 0, 0
    if part and part[:1] not in (b" ", b"\t"):
        space, at = _next(_WORD, part, 0)
        seed = vw_hash(space, 0) & 0xFFFFFFFF
        if part[at : at + 1] == b":":
            word, at = _next(_VALUE, part, at + 1)
            if (factor := _value(word)) is None:
                found.append(Unusable("no number"))
                return space
    while (at := _behind_spaces(part, at)) < len(part):
        name, at = _next(_WORD, part, at)
        index, value = (vw_hash(name, seed) if name else seed + nameless), np.float32(1)
        nameless += not name
        if part[at : at + 1] == b":":
            word, at = _next(_VALUE, part, at + 1)
            if (value := _value(word)) is None:
                found.append(Unusable("no number"))
                return space
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            value = value * factor
        if value != 0:
            found.append([index & mask, float(value)])
    return space


def _next(pattern: re.Pattern[bytes], part: bytes, at: int) -> tuple[bytes, int]:
    word = pattern.match(part, at)
    assert word is not None
    return word[0], word.end()


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


def text(word: bytes) -> Any:
    """A word; None where there is none."""
    try:
        return word.decode() or None
    except UnicodeDecodeError:
        return Unusable("text that is not UTF-8")


def encode_rows(format: str, schema: Schema, rows: Sequence[Any]) -> bytes:
    """A line for each row, a dict, by the native encoder. UserMistake for a cell that no line can hold."""
    columns = [(column.entry, column) for _, column in schema.columns]

    def plain(value: Any, number: int) -> Any:
        kind, column = columns[number]
        return kind.plain(column, value)

    encoder = _native.RecordEncoder(format, schema.native_columns(), plain)
    try:
        encoder.read_rows(list(rows))
        return encoder.encode(0, len(rows))
    except ValueError as error:
        row, name, expected, got = error.args
        raise UserMistake(f"rows: row {row}, column {name}: expected {expected}, got {got}") from None
