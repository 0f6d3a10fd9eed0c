"""msgpack records, slowly: what the native decoder and encoder are tested against."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import msgpack
import numpy as np

from streamtrain.columns.formats.parsed import Binary, BrokenRecord, Pairs, Unusable
from streamtrain.columns.paths import nested
from streamtrain.columns.schema import Schema
from tests.oracles.parsed import Parsed, registry_frame
from tests.oracles.plain_cells import plain_columns

EXAMPLES = [
    msgpack.packb({"x1": 1.5, "x2": -2000, "carrier": "AA", "late": 1}),
    msgpack.packb(
        {"late": True, "carrier": "é", "x1": 0.25, "more": {"a": [1, None, b"x"]}, "x2": 2**40}, use_single_float=True
    ),
    msgpack.packb(
        [{"x1": 1, "x2": 2, "carrier": "AA", "late": 0}, {"x1": "n/a", "x2": 2}, {"x1": 7, "late": 1, "x2": 1}]
    ),
    msgpack.packb([1.5, 2, "AA", 1]),
    msgpack.packb([[1.5, 2, "AA", 1], [1, 2, None, 0], [1, 2], [float("nan"), 2, 3, 0], "no row"]),
    msgpack.packb({"x1": [1, 2, 3], "x2": [4.5, None, 6], "carrier": ["AA", 7, True], "late": [0, 1, 1], "other": "x"}),
    msgpack.packb({"x1": 1, "x2": 70000, "carrier": "x" * 300, "late": 0, "time": msgpack.Timestamp(1, 2), 5: -3}),
    msgpack.packb([]),
    msgpack.packb(
        {"user": {"x1": 1.5, "a.b": {"carrier": "AA"}}, "x1": 3, "list": [0, {"x3": 4}, [], "JFK"], "late": 1}
    ),
    msgpack.packb(
        [{"late": 0, "x1": 1, "user": {"x1": 2, "a.b": 7}}, {"late": 1, "x1": 1, "user": {"x1": 2}, "list": {"x3": 1}}]
    ),
]


_SIZED = {  # tag: (what, bytes of the size, bytes between size and data)
    0xC4: ("binary", 1, 0), 0xC5: ("binary", 2, 0), 0xC6: ("binary", 4, 0),
    0xC7: ("extension", 1, 1), 0xC8: ("extension", 2, 1), 0xC9: ("extension", 4, 1),
    0xD9: ("text", 1, 0), 0xDA: ("text", 2, 0), 0xDB: ("text", 4, 0),
    0xDC: ("array", 2, 0), 0xDD: ("array", 4, 0), 0xDE: ("map", 2, 0), 0xDF: ("map", 4, 0),
}  # fmt: skip


_FIXED = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}


def encode(schema: Schema, columns: Mapping[str, Any]) -> bytes:
    """One row as a map, nested by the columns' paths, more as a map of arrays by name.

    A number is float32 where that is exact, or its column's cells are float32 anyway. `columns`: arrays or lists of
    one length.
    """
    cells = plain_columns(columns)
    single = all(len(column) == 1 for column in cells.values())
    given: Any = nested({name: column[0] for name, column in cells.items()}, schema.paths) if single else cells
    floats = [name for name in schema.numbers if name in cells and name not in schema.exact]
    exact = all(
        float(np.float32(cell)) == cell
        for name in cells if name not in floats for cell in cells[name] if type(cell) is float
    )
    packed = msgpack.packb(given, use_single_float=exact)
    assert isinstance(packed, bytes)
    return packed


def encode_rows(schema: Schema, rows: Sequence[Any]) -> bytes:
    """Rows as they are, one record: each a map or an array."""
    packed = msgpack.packb(rows[0] if len(rows) == 1 else list(rows))
    assert isinstance(packed, bytes)
    return packed


def parse(record: bytes) -> Parsed:
    """The record's values, slowly."""
    parsed = Parsed(broken=registry_frame(record))
    if parsed.broken is not None:
        return parsed
    try:
        kind, count, at = _head(record, 0)
        parsed.many = kind == "array" and (count == 0 or _is_nested(record[at]))
        if parsed.many:
            for _ in range(count):
                value, at = _value(record, at)
                parsed.rows.append(value)
        elif kind in ("map", "array"):
            value, at = _value(record, 0)
            if at == len(record):
                parsed.rows.append(value)
        else:
            raise BrokenRecord("neither a map nor an array")
        if at != len(record):
            raise BrokenRecord("more behind the end")
    except BrokenRecord as broken:
        parsed.broken = str(broken)
    return parsed


def _is_nested(tag: int) -> bool:
    return 0x80 <= tag < 0xA0 or 0xDC <= tag < 0xE0


def _head(record: bytes, at: int) -> tuple[str, Any, int]:
    """Returns the type at `at`, its value or size, and where its bytes or elements begin."""
    if at >= len(record):
        raise BrokenRecord("the end")
    tag = record[at]
    at += 1
    if tag < 0x80 or tag >= 0xE0:
        return "value", tag if tag < 0x80 else tag - 256, at
    if tag < 0xC0:
        kind, size = ("map", tag & 15) if tag < 0x90 else ("array", tag & 15) if tag < 0xA0 else ("text", tag & 31)
    elif tag in (0xC0, 0xC2, 0xC3):
        return "value", {0xC0: None, 0xC2: False, 0xC3: True}[tag], at
    elif tag in _FIXED:
        return (
            "value",
            struct.unpack(_FIXED[tag], _take(record, at, struct.calcsize(_FIXED[tag])))[0],
            at + struct.calcsize(_FIXED[tag]),
        )
    elif 0xD4 <= tag <= 0xD8:
        kind, size, at = "extension", 1 << (tag - 0xD4), at + 1
    elif tag in _SIZED:
        kind, width, between = _SIZED[tag]
        size = int.from_bytes(_take(record, at, width), "big")
        at += width + between
    else:
        raise BrokenRecord("byte 0xc1")
    if size * (2 if kind == "map" else 1) > len(record) - at:
        raise BrokenRecord(f"{kind} of {size}, {len(record) - at} bytes left")
    return kind, size, at


def _take(record: bytes, at: int, count: int) -> bytes:
    if at + count > len(record):
        raise BrokenRecord("the end")
    return record[at : at + count]


def _value(record: bytes, at: int) -> tuple[Any, int]:
    kind, value, at = _head(record, at)
    if kind == "value":
        return value, at
    if kind == "array":
        elements = []
        for _ in range(value):
            element, at = _value(record, at)
            elements.append(element)
        return elements, at
    if kind == "map":
        pairs = Pairs()
        for _ in range(value):
            key, at = _value(record, at)
            inner, at = _value(record, at)
            pairs.append((key, inner))
        return pairs, at
    raw = _take(record, at, value)
    if kind != "text":
        raw = record[at : at + value]
        return Binary(kind, raw) if kind == "binary" else Unusable(kind), at + value
    try:
        return raw.decode(), at + value
    except UnicodeDecodeError:
        return Unusable("text that is not UTF-8"), at + value
