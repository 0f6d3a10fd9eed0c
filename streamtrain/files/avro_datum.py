"""Values of Avro data, for container files; records are decoded natively."""

from __future__ import annotations

import struct
from typing import Any

from streamtrain.columns.formats.avro_schema import (
    MOMENTS,
    Rows,
    Type,
    kind_of,
    logical_of,
)
from streamtrain.columns.formats.parsed import Binary, BrokenRecord, Moment, Pairs, Unusable

_DEEPEST = 64  # records within each other, but those that always take as many bytes; as native/decode/formats/avro.h


_MOST_DECIMAL_BYTES = 32


class Datum:
    """Reads values from the front to the back; `field`: that of the row that is being read."""

    def __init__(self, record: bytes, rows: Rows) -> None:
        self._record, self._rows, self._end = record, rows, len(record)
        self.at, self.field = 0, ""

    def row(self) -> Pairs:
        row = Pairs()
        for field in self._rows.row["fields"]:
            self.field = field["name"]
            row.append((field["name"], self._value(field["type"], 0)))
        self.field = ""
        return row

    def block(self) -> tuple[int, int | None]:
        """Returns how many elements follow, and in how many bytes if the block gives that."""
        count = self._number()
        size = None
        if count < 0:
            size = self._number()
            if not 0 <= size <= self._end - self.at:
                raise BrokenRecord(f"a block of {size} bytes")
        else:
            self.claim(count)
        return abs(count), size

    def claim(self, count: int) -> None:
        if count > self._end - self.at:
            raise BrokenRecord(f"a block of {count} elements, {self._end - self.at} bytes left")

    def _number(self) -> int:
        raw = 0
        for i in range(10):
            byte = self._take(1)[0]
            if i == 9 and byte > 1:
                break
            raw |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                return (raw >> 1) ^ -(raw & 1)
        raise BrokenRecord("a number of more than 64 bits")

    def _take(self, size: int) -> bytes:
        if not 0 <= size <= self._end - self.at:
            raise BrokenRecord(f"{size} bytes, {self._end - self.at} left")
        self.at += size
        return self._record[self.at - size : self.at]

    def _value(self, given: Type, depth: int) -> Any:
        found = self._rows.resolved(given)
        kind = kind_of(found)
        if isinstance(found, list):
            branch = self._number()
            if not 0 <= branch < len(found):
                raise BrokenRecord(f"branch {branch} of {len(found)}")
            return self._value(found[branch], depth)
        if kind == "null":
            return None
        if kind == "boolean":
            byte = self._take(1)[0]
            return bool(byte) if byte < 2 else Unusable("a boolean that is neither")
        if kind in ("int", "long"):
            return timed(self._number(), logical_of(found))
        if kind in ("float", "double"):
            return struct.unpack(*(("<f", self._take(4)) if kind == "float" else ("<d", self._take(8))))[0]
        if kind == "string":
            return _text(self._take(self._number()))
        if kind == "bytes":
            return _binary(self._take(self._number()), found)
        assert isinstance(found, dict)
        if kind == "enum":
            index = self._number()
            return found["symbols"][index] if 0 <= index < len(found["symbols"]) else Unusable("no symbol")
        if kind == "fixed":
            return _binary(self._take(found["size"]), found)
        return self._record_value(found, depth) if kind == "record" else self._blocks(found, depth)

    def _record_value(self, found: dict[str, Any], depth: int) -> Pairs:
        if self._rows.fixed_bytes(found) is None:
            if depth == _DEEPEST:
                raise BrokenRecord("records nested too deep")
            depth += 1
        return Pairs((field["name"], self._value(field["type"], depth)) for field in found["fields"])

    def _blocks(self, found: dict[str, Any], depth: int) -> Any:
        """An array or a map. A block that tells its size is passed over by that, whatever is in it."""
        is_map = found["type"] == "map"
        values: Any = Pairs() if is_map else []
        bad = False
        while True:
            count, size = self.block()
            if not count:
                return Unusable("an array whose blocks are not as long as they say") if bad else values
            end = self._end
            behind = self.at + size if size is not None else None
            try:
                self._end = behind if behind is not None else end
                if not is_map and self._rows.fixed_bytes(found["items"]) == 0:
                    count = min(count, self._end)  # of what takes no bytes there may be any number
                for _ in range(count):
                    key = _text(self._take(self._number())) if is_map else None
                    value = self._value(found["values" if is_map else "items"], depth)
                    values.append((key, value) if is_map else value)
            except BrokenRecord:
                if behind is None:
                    raise
                bad = True
            finally:
                self._end = end
                self.at = behind if behind is not None else self.at


def timed(value: int, logical: str) -> int:
    return Moment(value, MOMENTS[logical]) if logical in MOMENTS else value


def _text(raw: bytes) -> str | Unusable:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return Unusable("text that is not UTF-8")


def _binary(raw: bytes, found: Type) -> Any:
    logical = logical_of(found)
    if logical == "uuid":
        digits = raw.hex()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    if logical != "decimal" or not isinstance(found, dict):
        return Binary("bytes", raw)
    if len(raw) > _MOST_DECIMAL_BYTES:
        return Unusable(f"a decimal of {len(raw)} bytes")
    unscaled = int.from_bytes(raw, "big", signed=True)
    return float(f"{unscaled}e-{found['scale']}") if found["scale"] else unscaled
