"""What a record means, in slow plain Python: the native decoders are tested against it.

One row at a time over a format's parse(); every rule of native/decode/row_writer.h a second time, on purpose.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamtrain.columns.formats import record_format
from streamtrain.columns.formats._parsed import (
    MISSING_ENTRY,
    Pairs,
    Parsed,
    Unusable,
    contains_unusable,
    registry_frame,
)
from streamtrain.columns.schema import Schema
from tests.columns.murmur3 import bucket

_BLOCKS = {"number": "numbers", "category": "categories", "weight": "weight"}


class Wrong(Exception):
    """A cell does not fit its column."""


@dataclass
class Reference:
    """The rows of a record that train, by block, and the fate of the others."""

    numbers: list[list[np.float32]] = field(default_factory=list)
    categories: list[list[int]] = field(default_factory=list)
    label: list[float] = field(default_factory=list)
    weight: list[np.float32] = field(default_factory=list)
    dead: list[tuple[int, str, bool]] = field(default_factory=list)  # row, path, remainder
    filtered: list[int] = field(default_factory=list)
    rows: int = 0
    newest_event_time_ms: int = -1


def decode(schema: Schema, format_name: str, record: bytes) -> Reference:
    """The record by the format's slow parse."""
    reader = _Reader(schema, check_ignored=format_name == "json")
    if registry_frame(record):
        reader.refuse("$")
        return reader.out
    parsed: Parsed = record_format(format_name).parse(record)
    if parsed.columns is not None:
        reader.packed(parsed)
    else:
        reader.shaped(parsed)
    return reader.out


class _Reader:
    def __init__(self, schema: Schema, check_ignored: bool) -> None:
        self.columns = schema.native_columns()
        self.short = schema.short_columns()
        self.by_name = {column["name"]: i for i, column in enumerate(self.columns) if column["target"] != "ignored"}
        self.check_ignored = check_ignored
        self.out = Reference()

    def refuse(self, path: str) -> None:
        self.out.dead.append((self.out.rows, path, True))
        self.out.rows += 1

    def shaped(self, parsed: Parsed) -> None:
        if not parsed.many and parsed.rows and self._is_columns(parsed.rows[0]):
            return self._columns(parsed.rows[0])
        for row in parsed.rows:
            at = f"$[{self.out.rows}]" if parsed.many else "$"
            try:
                cells = self._cells(row)
            except Wrong:
                self._dead(at)
                continue
            self._row(cells, lambda name, at=at: f"{at}.{name}")
        if parsed.broken is not None:
            self.refuse(f"$[{self.out.rows}]" if parsed.many else "$")

    def packed(self, parsed: Parsed) -> None:
        assert parsed.columns is not None
        found: dict[int, list[Any]] = {}
        for name, values in parsed.columns:
            if name not in self.by_name:
                continue
            if isinstance(values, Unusable):
                return self.refuse(f"$.{name}")
            found[self.by_name[name]] = values
        if parsed.broken is not None:
            return self.refuse("$")
        self._across(found, parsed.row_count)

    def _is_columns(self, row: Any) -> bool:
        if not isinstance(row, Pairs):
            return False
        first = next((value for key, value in row if isinstance(key, str) and key in self.by_name), None)
        return type(first) is list

    def _columns(self, row: Pairs) -> None:
        found: dict[int, Any] = {}
        for key, value in row:
            if isinstance(key, str) and key in self.by_name:
                found[self.by_name[key]] = value
            elif self.check_ignored and (isinstance(key, Unusable) or contains_unusable(value)):
                return self.refuse("$")
        found = {column: found[column] for column in sorted(found) if found[column] is not None}
        lengths = [len(values) if type(values) is list else -1 for values in found.values()]
        for column, length in zip(found, lengths, strict=True):
            if length != lengths[0] or length < 0:
                return self.refuse(f"$.{self.columns[column]['name']}")
        self._across(found, lengths[0] if lengths else 0)

    def _across(self, found: dict[int, list[Any]], count: int) -> None:
        for row in range(count):
            cells = [(column, values[row]) for column, values in found.items()]
            self._row(cells, lambda name, row=row: f"$.{name}[{row}]")

    def _cells(self, row: Any) -> list[tuple[int, Any]]:
        """The row's cells in the order given; Wrong if the row as a whole is no row."""
        if isinstance(row, Pairs):
            cells = []
            for key, value in row:
                if isinstance(key, str) and key in self.by_name:
                    cells.append((self.by_name[key], value))
                elif self.check_ignored and (isinstance(key, Unusable) or contains_unusable(value)):
                    cells.append((-1, value))
            return cells
        if type(row) is not list:
            raise Wrong
        order = self.short if self.short and len(row) == len(self.short) else list(range(len(self.columns)))
        if len(row) != len(order):
            raise Wrong
        ignored = {i for i, column in enumerate(self.columns) if column["target"] == "ignored"}
        return [
            (-1 if column in ignored else column, value)
            for column, value in zip(order, row, strict=True)
            if column not in ignored or (self.check_ignored and contains_unusable(value))
        ]

    def _dead(self, path: str) -> None:
        self.out.dead.append((self.out.rows, path, False))
        self.out.rows += 1

    def _row(self, cells: list[tuple[int, Any]], path: Any) -> None:
        given: dict[int, Any] = {}
        time = None
        for column, value in cells:
            if column < 0:
                return self._dead(path("").rpartition(".")[0])
            name = self.columns[column]["name"]
            if value is None or value is MISSING_ENTRY or value == "":
                given.pop(column, None)
                continue
            try:
                given[column] = _take(self.columns[column], value)
            except (Wrong, OverflowError):
                return self._dead(path(name))
        absent = [i for i in self.by_name.values() if i not in given]
        if any(self.columns[i]["missing"] == "skip" for i in absent):
            self.out.filtered.append(self.out.rows)
            self.out.rows += 1
            return None
        for i in absent:
            if self.columns[i]["missing"] == "dead_letter":
                return self._dead(path(self.columns[i]["name"]))
            given[i] = _stand_in(self.columns[i])
        for i, spec in enumerate(self.columns):
            if spec["target"] == "event_time":
                time = given[i]
        self._train(given, time)

    def _train(self, given: dict[int, Any], time: int | None) -> None:
        row: dict[str, list[Any]] = {"numbers": [], "categories": [], "label": [], "weight": []}
        for i, column in enumerate(self.columns):
            if column["target"] not in ("ignored", "event_time"):
                row[_BLOCKS.get(column["target"], "label")].append(given[i])
        self.out.numbers.append(row["numbers"])
        self.out.categories.append(row["categories"])
        self.out.label += row["label"] or [0.0]
        self.out.weight += row["weight"] or [np.float32(1)]
        self.out.rows += 1
        if time is not None:
            self.out.newest_event_time_ms = max(self.out.newest_event_time_ms, time)


def _stand_in(column: dict[str, Any]) -> Any:
    value = column["missing_value"]
    if column["target"] == "category":
        return bucket(column["name"], value, column["buckets"])
    return int(value) if column["target"] in ("event_time", "label_class") else np.float32(value)


def _take(column: dict[str, Any], value: Any) -> Any:
    """What a cell becomes in its column; Wrong if it does not fit."""
    if not isinstance(value, bool | int | float | str):
        raise Wrong
    target = column["target"]
    if target == "category":
        return bucket(column["name"], _as_text(value), column["buckets"])
    if target in ("label_class", "label_binary"):
        return _label(column, value)
    if target == "event_time":
        return _time(column["unit"], value)
    if isinstance(value, str):
        raise Wrong
    number = _float32(float(value) if abs(value) < 2**1024 - 2**970 else math.inf)
    if target == "weight" and value < 0:
        raise Wrong
    return number


def _float32(value: float) -> np.float32:
    with np.errstate(over="ignore"):
        number = np.float32(value)
    if not np.isfinite(number):
        raise Wrong
    return number


def _whole(value: Any) -> int | None:
    """The integer a number cell is: integers, and floats below 2^53 without a fraction."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else None
    return int(value)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    whole = _whole(value)
    if whole is None:
        raise Wrong
    return str(whole)


def _label(column: dict[str, Any], value: Any) -> float:
    names: list[str] = column.get("classes", [])
    count: int = column.get("class_count", 0)
    binary = column["target"] == "label_binary"
    if isinstance(value, bool):
        if binary:
            return float(value)
        if "true" not in names and "false" not in names:
            raise Wrong
    if isinstance(value, str | bool):
        if _as_text(value) not in names:
            raise Wrong
        return names.index(_as_text(value))
    whole = _whole(value)
    if whole is None:
        raise Wrong
    if any(name.removeprefix("-").isascii() and name.removeprefix("-").isdigit() for name in names):
        if str(whole) not in names:
            raise Wrong
        return names.index(str(whole))
    if not 0 <= whole < (count or 2):
        raise Wrong
    return whole


def _time(unit: tuple[int, int], value: Any) -> int:
    numerator, divisor = unit
    if isinstance(value, bool | str):
        raise Wrong
    if isinstance(value, int) and abs(value) < 2**62 and numerator == 1:
        return value // divisor
    ms = math.floor(float(value) * numerator / divisor) if math.isfinite(value) else math.inf
    if not abs(ms) < 4e18:
        raise Wrong
    return int(ms)
