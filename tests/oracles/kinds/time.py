"""A time, in milliseconds since 1970: a number in a unit, or a text."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

from streamtrain.columns.column import Column
from streamtrain.columns.formats.parsed import Moment
from streamtrain.columns.kinds.time import ISO_8601
from tests.oracles.kinds import Cell, Oracle, Wrong
from tests.oracles.kinds._numbers import decimal

_UNITS = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}  # to ms
_WHOLE = re.compile(r" *[+-]?[0-9]{1,19} *")  # exact; a longer one is no time
_MONTHS = [date(2000, month, 1).strftime("%B").lower() for month in range(1, 13)]
_READ = {  # strptime's directives, each with the field it tells
    "Y": r"(?P<year>\d{4})", "y": r"(?P<short_year>\d{2})", "m": r"(?P<month>\d{1,2})", "d": r"(?P<day>\d{1,2})",
    "j": r"(?P<day_of_year>\d{1,3})", "b": rf"(?P<name>{'|'.join(month[:3] for month in _MONTHS)})",
    "B": rf"(?P<name>{'|'.join(_MONTHS)})", "H": r"(?P<hour>\d{1,2})", "I": r"(?P<half_hour>\d{1,2})",
    "p": r"(?P<half>am|pm)", "M": r"(?P<minute>\d{1,2})", "S": r"(?P<second>\d{1,2})", "f": r"(?P<fraction>\d+)",
    "z": r"(?P<offset>z|[+-]\d{2}(?::?\d{2})?)",
}  # fmt: skip
_ISO = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"
    r"(?:[t ](?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d+))?)?"
    rf"{_READ['z']}?)?",
    re.IGNORECASE | re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Time(Oracle):
    def meaning(self, name: str, column: Column, loss: str, cell: Cell) -> Any:
        if isinstance(cell, Moment):
            scaled_ms = int(cell) * cell.unit[0] // cell.unit[1]
            if abs(scaled_ms) >= 2**62:
                raise Wrong
            return scaled_ms
        numerator, divisor = _UNITS[column.counts]
        if isinstance(cell, str) and column.parse is not None:
            return moment(column.parse, column.zone, cell)
        if isinstance(cell, bool | str):
            raise Wrong
        if isinstance(cell, int) and abs(cell) < 2**62 and numerator == 1:
            return cell // divisor
        ms = math.floor(float(cell) * numerator / divisor) if math.isfinite(cell) else math.inf
        if not abs(ms) < 4e18:
            raise Wrong
        return int(ms)

    def meaning_of_missing(self, name: str, column: Column, loss: str) -> Any:
        return int(column.entry.stand_in(column, loss))

    def written(self, column: Column, loss: str, text: str) -> Cell:
        if column.parse is not None:
            with suppress(Wrong):
                moment(column.parse, column.zone, text)
                return text
        return int(text) if _WHOLE.fullmatch(text) else decimal(text)


def moment(format: str, zone_name: str | None, text: str) -> int:
    """Returns milliseconds since 1970 of a time written as text. Wrong if it is none."""
    pattern = _ISO if format == ISO_8601 else _pattern(format)
    found = pattern.fullmatch(text)
    if found is None:
        raise Wrong
    parts = {name: value for name, value in found.groupdict().items() if value is not None}
    number = {name: int(value) for name, value in parts.items() if value.isdigit()}
    hour, second = number.get("hour", 0), number.get("second", 0)
    if "half_hour" in number:
        hour = number["half_hour"] % 12 + 12 * (parts.get("half", "am").lower() == "pm")
        if not 1 <= number["half_hour"] <= 12:
            raise Wrong
    elif "half" in parts:
        hour = hour % 12 + 12 * (parts["half"].lower() == "pm")
    short = number.get("short_year", 70)
    year = number.get("year", short + (2000 if short < 69 else 1900))
    month = number.get("month", 1)
    if "name" in parts:
        month = 1 + next(i for i, name in enumerate(_MONTHS) if name.startswith(parts["name"].lower()))
    try:
        day = datetime(year, month, number.get("day", 1))
        if "day_of_year" in number:
            day = datetime(year, 1, 1) + timedelta(days=number["day_of_year"] - 1)
            if day.year != year:
                raise Wrong
        local = day.replace(hour=hour, minute=number.get("minute", 0), second=min(second, 59))
        zone = _offset(parts["offset"]) if "offset" in parts else ZoneInfo(zone_name) if zone_name else None
    except (ValueError, OverflowError):
        raise Wrong from None
    if zone is None or second > 60:
        raise Wrong
    seconds = (local.replace(tzinfo=zone) - _EPOCH) // timedelta(seconds=1) + (second == 60)
    return seconds * 1000 + int(parts.get("fraction", "0")[:3].ljust(3, "0"))


def _pattern(format: str) -> re.Pattern[str]:
    parts = re.split("%(.)", format)  # what stands for itself, and directives, in turns
    read = [
        re.escape("%" if part == "%" else part) if i % 2 == 0 or part == "%" else _READ[part]
        for i, part in enumerate(parts)
    ]
    return re.compile("".join(read), re.IGNORECASE | re.ASCII)


def _offset(text: str) -> timezone:
    digits = text.strip("+-").replace(":", "").ljust(4, "0")
    if text in "zZ":
        return UTC
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    if int(digits[:2]) > 23 or int(digits[2:]) > 59:
        raise Wrong
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


ORACLE = Time()
