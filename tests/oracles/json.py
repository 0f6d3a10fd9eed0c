"""JSON records, slowly: what the native decoder and encoder are tested against."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from streamtrain.columns.formats.parsed import BrokenRecord, Pairs, Unusable
from streamtrain.columns.paths import nested
from streamtrain.columns.schema import Schema
from tests.oracles.frame import Ask, datum_of, prefix
from tests.oracles.parsed import Parsed, registry_frame
from tests.oracles.plain_cells import plain_columns

DEEPEST = 256  # open arrays and objects; as native/decode/json_text.h


EXAMPLES = [
    b'{"x1": 1.5, "x2": -2e3, "carrier": "AA", "late": 1}',
    b' { "late" : true , "carrier" : "\\u00e9\\n" , "x1" : 0.25, "more": {"a": [1, "}", null]}, "x2" : 3 } ',
    b'[{"x1": 1, "x2": 2, "carrier": "AA", "late": 0}, {"x1": "n/a", "x2": 2}, {"x1": 7, "late": 1, "x2": 1}]',
    b'[1.5, 2, "AA", 1]',
    b'[[1.5, 2, "AA", 1], [1, 2, null, 0], [1, 2], [NaN, 2, 3, 0]]',
    b'{"x1": [1, 2, 3], "x2": [4.5, null, 6], "carrier": ["AA", 7, true], "late": [0, 1, 1], "other": "x"}',
    '{"x1": 1, "x2": 2, "carrier": "Zürich \U0001f6eb", "late": 0}'.encode(),
    b"[]",
    b'{"x1": 1, "x2": 2, "late": 0}\r\n\n[1.5, 2, "AA", 1]\n {"x1": [3], "x2": 1, "late": 1}\n{"x2": 1}\n',
    b'{"user": {"x1": 1.5, "a.b": {"carrier": "AA"}, "x1": 2}, "x1": 3, "list": [0, {"x3": 4}, [], "JFK"], "late": 1}',
    b'[{"late":0,"x1":1,"user":{"x1":2,"a.b":7}},{"late":1,"x1":1,"user":{"x1":2},"list":{"x3":1}},{"user":{}}]',
]


_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


_SPACE = re.compile(rb"[ \t\r\n]*")


_WORDS = {
    b"null": None, b"true": True, b"false": False, b"NaN": float("nan"), b"Infinity": float("inf"),
    b"-Infinity": float("-inf"),
}  # fmt: skip


_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"', re.DOTALL)


_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt])|(.?))', re.DOTALL)


_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def encode(
    columns_of: Schema, columns: Mapping[str, Any], frame: str = "none", schema_id: int = 0, **others: Any
) -> bytes:
    """One row as an object, nested by the columns' paths, more as an object of arrays by name.

    `columns`: arrays or lists of one length; None is null.
    """
    cells = plain_columns(columns)
    if all(len(column) == 1 for column in cells.values()):
        given: Any = nested({name: column[0] for name, column in cells.items()}, columns_of.paths)
    else:
        given = cells
    return prefix(frame, schema_id) + json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode()


def encode_rows(
    columns_of: Schema, rows: Sequence[Any], frame: str = "none", schema_id: int = 0, **others: Any
) -> bytes:
    """Rows as they are, one record: each an object or an array."""
    given = rows[0] if len(rows) == 1 else list(rows)
    return prefix(frame, schema_id) + json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode()


def parse(
    record: bytes,
    frame: str = "none",
    schemas: Ask | None = None,
    header: bytes | None = None,
    **others: Any,
) -> Parsed:
    """The record's values, slowly; `schemas` says why a name is refused, `header` may hold it."""
    parsed = Parsed(broken=registry_frame(record) if frame != "registry" else None)
    if parsed.broken is not None:
        return parsed
    try:
        if frame == "registry":
            record, _ = datum_of(record, header, schemas)
        at = _space(record, 3 if record.startswith(codecs.BOM_UTF8) else 0)
        if record[at : at + 1] == b"[":
            first = _space(record, at + 1)
            parsed.many = record[first : first + 1] in (b"[", b"{", b"]")
        if not parsed.many:
            if record[at : at + 1] not in (b"[", b"{"):
                raise BrokenRecord("neither an object nor an array")
            return _lines(parsed, record, at)
        at = _space(record, at + 1)
        if record[at : at + 1] == b"]":
            _end(record, at + 1)
            return parsed
        while True:
            value, at = _value(record, _space(record, at), 0)
            parsed.rows.append(value)
            at = _space(record, at)
            if record[at : at + 1] == b"]":
                _end(record, at + 1)
                return parsed
            at = _expect(record, at, b",")
    except BrokenRecord as broken:
        parsed.broken = str(broken)
    return parsed


def _lines(parsed: Parsed, record: bytes, at: int) -> Parsed:
    """One row, or many with a new line between two."""
    while True:
        value, behind = _value(record, at, 0)
        at = _space(record, behind)
        is_line = b"\n" in record[behind:at] and record[at : at + 1] in (b"{", b"[")
        parsed.many |= is_line
        if at < len(record) and not parsed.many:
            raise BrokenRecord("more behind the end")
        parsed.rows.append(value)
        if at == len(record):
            return parsed
        if not is_line:
            raise BrokenRecord(f"expected a row on a line of its own at byte {at}")


def _space(record: bytes, at: int) -> int:
    match = _SPACE.match(record, at)
    assert match is not None
    return match.end()


def _end(record: bytes, at: int) -> None:
    if _space(record, at) != len(record):
        raise BrokenRecord("more behind the end")


def _expect(record: bytes, at: int, token: bytes) -> int:
    if record[at : at + len(token)] != token:
        raise BrokenRecord(f"expected {token!r} at byte {at}")
    return at + len(token)


def _value(record: bytes, at: int, depth: int) -> tuple[Any, int]:
    first = record[at : at + 1]
    if first == b'"':
        return _string(record, at)
    if first == b"{" or first == b"[":
        # a row's own bracket does not count, nor that of the array of rows around it
        if depth > DEEPEST:
            raise BrokenRecord("nested too deep")
        return _nested(record, at + 1, depth, first == b"{")
    if match := _NUMBER.match(record, at):
        text = match[0].decode()
        whole = match[1] is None and match[2] is None
        if not record[match.end() : match.end() + 1].isdigit():
            return (int(text) if whole else float(text)), match.end()
    for word, value in _WORDS.items():
        if record.startswith(word, at):
            return value, at + len(word)
    raise BrokenRecord(f"expected a value at byte {at}")


def _nested(record: bytes, at: int, depth: int, is_object: bool) -> tuple[Any, int]:
    values: list[Any] = Pairs() if is_object else []
    close = b"}" if is_object else b"]"
    at = _space(record, at)
    if record[at : at + 1] == close:
        return values, at + 1
    while True:
        key: Any = None
        if is_object:
            if record[at : at + 1] != b'"':
                raise BrokenRecord(f"expected a key at byte {at}")
            key, at = _string(record, at)
            at = _space(record, _expect(record, _space(record, at), b":"))
        value, at = _value(record, at, depth + 1)
        values.append((key, value) if is_object else value)
        at = _space(record, at)
        if record[at : at + 1] == close:
            return values, at + 1
        at = _space(record, _expect(record, at, b","))


def _string(record: bytes, at: int) -> tuple[str | Unusable, int]:
    match = _STRING.match(record, at)
    if match is None:
        raise BrokenRecord("a string without an end")
    return _text(match[1]), match.end()


def _text(raw: bytes) -> str | Unusable:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return Unusable("text that is not UTF-8")
    if any(letter < " " for letter in text):
        return Unusable("a control character in text")
    if any(escape[3] is not None for escape in _ESCAPE.finditer(text)):
        return Unusable("text with an unknown escape")
    units = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES.get(m[2], m[2]), text)
    try:
        return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return Unusable("text with half a surrogate pair")
