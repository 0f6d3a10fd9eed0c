"""Plain values → Avro data, slowly: what the native encoder does with cells, and for nested values too."""

from __future__ import annotations

import math
import struct
from typing import Any

from streamtrain.columns.formats.avro_schema import MOMENTS, Rows, Type, kind_of, logical_of
from streamtrain.columns.formats.parsed import Moment, Unusable
from tests.oracles.plain_cells import is_empty
from tests.oracles.protobuf_wire import varint, zigzag

_MOST = {"int": 2**31, "long": 2**63}
Unit = tuple[int, int] | None  # milliseconds of one, of a column that is a time


def number(value: int) -> bytes:
    """A number of variable length."""
    return varint(zigzag(value))


def row_bytes(rows: Rows, row: dict[str, Any], units: dict[str, Unit]) -> bytes:
    """One row's datum. ValueError((field, expected, got)) for what does not fit."""
    data = b""
    for field in rows.row["fields"]:
        value = row.get(field["name"])
        given = value_bytes(rows, field["type"], value, units.get(field["name"]))
        if given is None and value is None and "default" in field:
            given = _default(rows, field["type"], field["default"])
        if given is None:
            what = f"a value of the schema's {kind_of(rows.resolved(field['type']))}"
            raise ValueError(field["name"], what, "nothing" if value is None else repr(value))
        data += given
    return data


def value_bytes(rows: Rows, given: Type, value: Any, unit: Unit = None) -> bytes | None:
    """A value as its type has it: as it is, else as what it stands for; None where neither fits."""
    exact = _put(rows, given, value, unit, True)
    return _put(rows, given, value, unit, False) if exact is None else exact


def _put(rows: Rows, given: Type, value: Any, unit: Unit, exact: bool) -> bytes | None:
    found = rows.resolved(given)
    kind = kind_of(found)
    if isinstance(found, list):
        for branch, inner in enumerate(found):
            if (data := _put(rows, inner, value, unit, exact)) is not None:
                return number(branch) + data
        return None
    if kind == "null":
        return b"" if is_empty(value) else None
    if value is None or isinstance(value, Unusable):
        return None
    if kind == "boolean":
        fits = isinstance(value, bool) or (not exact and isinstance(value, int | float) and value in (0, 1))
        return bytes([int(value)]) if fits else None
    if kind in _MOST:
        return _whole(found, kind, value, unit, exact)
    if kind in ("float", "double"):
        return _real(kind, value, exact)
    if kind in ("string", "enum"):
        return _text(found, kind, value, exact)
    if kind in ("bytes", "fixed"):
        if isinstance(value, bytes):
            return _raw(found, value)
        return _decimal(found, value) if logical_of(found) == "decimal" else None
    assert isinstance(found, dict)
    return _nested(rows, found, value)


def _whole(found: Type, kind: str, value: Any, unit: Unit, exact: bool) -> bytes | None:
    unit = value.unit if isinstance(value, Moment) else unit
    moment = MOMENTS.get(logical_of(found)) if unit is not None else None
    if isinstance(value, bool):
        whole = None if exact else int(value)
    elif isinstance(value, int):
        whole = value
    elif exact or not isinstance(value, float) or not abs(value) < 9e18:
        whole = None
    elif moment is not None:
        whole = math.floor(value)
    else:
        whole = int(value) if value.is_integer() and abs(value) < 2**53 else None
    if whole is None:
        return None
    if moment is not None and unit is not None:
        whole = whole * unit[0] * moment[1] // (unit[1] * moment[0])
    return number(whole) if -_MOST[kind] <= whole < _MOST[kind] else None


def _real(kind: str, value: Any, exact: bool) -> bytes | None:
    if not isinstance(value, int | float) or (exact and not isinstance(value, float)):
        return None
    try:
        data = struct.pack("<f" if kind == "float" else "<d", value)
    except OverflowError:
        return None
    return None if exact and struct.unpack("<f" if kind == "float" else "<d", data)[0] != value else data


def _text(found: Type, kind: str, value: Any, exact: bool) -> bytes | None:
    if not isinstance(value, str):
        if exact or not isinstance(value, int | float):
            return None
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            value = int(value)
    text = str(value)
    if kind == "string":
        return number(len(text.encode())) + text.encode()
    assert isinstance(found, dict)
    return number(found["symbols"].index(text)) if text in found["symbols"] else None


def _raw(found: Type, value: bytes) -> bytes | None:
    if logical_of(found):
        return None
    if kind_of(found) == "bytes":
        return number(len(value)) + value
    return value if isinstance(found, dict) and found["size"] == len(value) else None


def _decimal(found: Type, value: Any) -> bytes | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    assert isinstance(found, dict)
    power = 10.0 ** found["scale"]
    unscaled = round(value * power)
    if not abs(unscaled) < 9e18 or unscaled / power != value:
        return None
    try:
        data = int(unscaled).to_bytes(8 if found["type"] == "bytes" else int(found["size"]), "big", signed=True)
    except OverflowError:
        return None
    return number(8) + data if found["type"] == "bytes" else data


def _nested(rows: Rows, found: dict[str, Any], value: Any) -> bytes | None:
    """A record, an array or a map of plain values."""
    if found["type"] == "record":
        if not isinstance(value, dict):
            return None
        parts = []
        for field in found["fields"]:
            part = value_bytes(rows, field["type"], value.get(field["name"]))
            if part is None and value.get(field["name"]) is None and "default" in field:
                part = _default(rows, field["type"], field["default"])
            parts.append(part)
        return None if None in parts else b"".join(filter(None, parts))
    if not isinstance(value, dict if found["type"] == "map" else list):
        return None
    data = number(len(value)) if value else b""
    for key in value:
        inner = value[key] if found["type"] == "map" else key
        each = value_bytes(rows, found["values" if found["type"] == "map" else "items"], inner)
        if each is None:
            return None
        data += (number(len(key.encode())) + key.encode() + each) if found["type"] == "map" else each
    return data + number(0)


def _default(rows: Rows, given: Type, default: Any) -> bytes:
    """A field's default, as JSON has it: of a union, one of the first branch."""
    found = rows.resolved(given)
    kind = kind_of(found)
    if isinstance(found, list):
        return number(0) + _default(rows, found[0], default)
    if kind in ("bytes", "fixed"):
        raw = str(default).encode("latin-1")
        return raw if kind == "fixed" else number(len(raw)) + raw
    if isinstance(found, dict) and kind == "record":
        return b"".join(
            _default(rows, field["type"], default.get(field["name"], field.get("default"))) for field in found["fields"]
        )
    data = value_bytes(rows, found, default)
    if data is None:
        raise ValueError("default", f"a value of the schema's {kind}", repr(default))
    return data
