"""Plain values → a Protobuf message, slowly: what the native encoder does with cells, and for nested values too."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

from streamtrain.columns.formats._protobuf_columns import article
from streamtrain.columns.formats._protobuf_wire import FIXED32, FIXED64, LENGTH
from streamtrain.columns.formats.parsed import Moment, Unusable
from streamtrain.columns.formats.protobuf_schema import Field, Message, Messages
from streamtrain.columns.paths import Path
from tests.oracles.plain_cells import Symbol, is_empty
from tests.oracles.protobuf_wire import sized, tag, varint, zigzag

Unit = tuple[int, int] | None  # milliseconds of one, of a column that is a time


def message_bytes(
    known: Messages, message: Message, row: Mapping[str, Any], cells: Mapping[Path, Unit], at: Path = ()
) -> bytes:
    """One message. `cells`: where columns stand. ValueError((field, expected, got)) for what does not fit."""
    data = b""
    for number in sorted(message.fields):
        field = message.fields[number]
        path = (*at, field.name)
        value = row.get(field.name)
        if field.type == "message" and not field.repeated and isinstance(value, dict):
            if value and not is_empty(value):
                inner = message_bytes(known, known.by_name[field.of], value, cells, path)
                data += sized(number, inner)
            continue
        if value is None:
            if not (field.presence or field.repeated or field.type == "string") and path in cells:
                raise ValueError(field.name, f"{article(field)}, which the schema has no `optional` for", "nothing")
            continue
        given = _several(known, field, value) if field.repeated else _one(known, field, value, cells.get(path))
        if given is None:
            raise ValueError(field.name, f"{article(field)} of the schema", repr(value))
        data += given
    return data


def _one(known: Messages, field: Field, value: Any, unit: Unit) -> bytes | None:
    """A field with its tag; nothing of what goes unwritten; None for what does not fit."""
    raw = _value(known, field, value, unit)
    if raw is None:
        return None
    is_silent = not field.presence and not any(raw)
    if field.wire == LENGTH:
        return b"" if is_silent and not raw else sized(field.number, raw)
    return b"" if is_silent else tag(field.number, field.wire) + raw


def _several(known: Messages, field: Field, values: Any) -> bytes | None:
    if not isinstance(values, list):
        return None
    if field.type == "message":
        inner = known.by_name[field.of]
        return b"".join(sized(field.number, message_bytes(known, inner, each, {})) for each in values)
    parts = [_value(known, field, each, None) for each in values]
    if None in parts:
        return None
    present_parts = [part for part in parts if part is not None]
    if field.wire == LENGTH:
        return b"".join(sized(field.number, part) for part in present_parts)
    return sized(field.number, b"".join(present_parts)) if present_parts else b""


def _value(known: Messages, field: Field, value: Any, unit: Unit) -> bytes | None:
    kind = field.type
    if isinstance(value, bytes):
        return value if kind == "bytes" else None
    if value is None or isinstance(value, Unusable | dict | list):
        return None
    if kind == "string":
        return _text(value).encode()
    if kind == "timestamp":
        return _timestamp(value, value.unit if isinstance(value, Moment) else unit or (1, 1))
    if kind == "enum":
        return _symbol(known.enums[field.of], value)
    if not isinstance(value, bool | int | float):
        return None
    if kind == "bool":
        return bytes([int(value)]) if value in (0, 1) else None
    if kind in ("float", "double"):
        return _real(kind, float(value))
    whole = int(value) if not isinstance(value, float) or (value.is_integer() and abs(value) < 2**53) else None
    return None if whole is None else _whole(field, whole)


def _whole(field: Field, whole: int) -> bytes | None:
    bits = 64 if field.type.endswith("64") else 32
    least, most = (0, 1 << bits) if field.type in ("uint32", "uint64", "fixed32", "fixed64") else (
        -(1 << (bits - 1)), 1 << (bits - 1))  # fmt: skip
    if not least <= whole < most:
        return None
    if field.wire in (FIXED32, FIXED64):
        return (whole & (1 << bits) - 1).to_bytes(bits // 8, "little")
    return varint(zigzag(whole) if field.type.startswith("s") else whole)


def _real(kind: str, value: float) -> bytes | None:
    try:
        return struct.pack("<f" if kind == "float" else "<d", value)
    except OverflowError:
        return None


def _text(value: Any) -> str:
    if isinstance(value, Symbol) and value.name:
        return value.name
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def _symbol(names: Mapping[int, str], value: Any) -> bytes | None:
    """By name, else by number."""
    text = _text(value)
    number = next((number for number, name in names.items() if name == text), None)
    if number is None:
        is_number = text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() and len(text) < 12
        number = int(text) if is_number else int(value) if isinstance(value, bool) else None
    return varint(number) if number is not None and -(1 << 31) <= number < 1 << 31 else None


def _timestamp(value: Any, unit: tuple[int, int]) -> bytes | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 9e18:
        return None
    nanos = math.floor(value) * unit[0] * 1_000_000 // unit[1]
    seconds, rest = divmod(nanos, 1_000_000_000)
    parts = [(1, seconds), (2, rest)]
    return b"".join(tag(number, 0) + varint(part) for number, part in parts if part)
