"""When a row happened, for lag and metrics: in no block, milliseconds since 1970 beside the slot.

A number counts the column's unit; a text is read where the column says how.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

import numpy as np
from pydantic import Field

from streamtrain.columns.kinds.kind import Kind, number_problem
from streamtrain.columns.kinds.parsed import Parsed
from streamtrain.columns.kinds.zones import names, offsets
from streamtrain.registry import nearest

HELP = "when a row happened"
UNITS: dict[str, tuple[int, int]] = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}  # to ms
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}  # microseconds
ISO_8601 = "iso8601"
_FIELDS = {  # strptime's directives, each with the part of a time that it reads
    "Y": "year", "y": "short_year", "m": "month", "d": "day", "j": "day_of_year", "b": "name", "B": "name", "H": "hour",
    "I": "half_hour", "p": "half", "M": "minute", "S": "second", "f": "fraction", "z": "offset",
}  # fmt: skip
_LARGEST = 1.7976931348623157e308


class Options(Parsed):
    """The settings of a time column."""

    zone: str | None = Field(
        None,
        description="time: of texts that tell no zone, such as 'Europe/Berlin'; default: they are refused",
        json_schema_extra={"misplaced": "only a time that is parsed has one"},
    )

    unit: Literal["s", "ms", "us", "ns"] | None = Field(
        None,
        description="time: unit of numbers; default ms",
        json_schema_extra={"misplaced": "only a time has one"},
    )

    @property
    def counts(self) -> str:
        return self.unit or "ms"


class Time(Kind[Options]):
    role = "event_time"
    in_requests = "ignored"
    options = Options

    def problems(self, column: Options) -> Iterator[str]:
        if column.parse is not None and (problem := format_problem(column.parse)):
            yield f"parse: {problem}"
        if column.zone is None:
            return
        if column.parse is None:
            yield "zone: only a time that is parsed has one; say parse too"
        elif column.zone not in names():
            near = nearest(column.zone, sorted(names()))
            hint = f"; did you mean {near!r}?" if near else ""
            yield f"zone: expected a name of the IANA time zone database, got {column.zone!r}{hint}"

    def missing_problem(self, column: Options) -> str | None:
        return number_problem(column.missing, _LARGEST)

    def native_options(self, column: Options, loss: str) -> dict[str, Any]:
        options: dict[str, Any] = {"unit": UNITS[column.counts], "parse": column.parse or ""}
        return options if column.zone is None else {**options, "zone": offsets(column.zone)}

    def stand_in(self, column: Options, loss: str) -> float:
        numerator, divisor = UNITS[column.counts]
        return float(column.missing) * numerator // divisor

    def time_unit(self, column: Options) -> tuple[int, int]:
        return UNITS[column.counts]

    def holds(self, column: Options) -> str:
        return "time"

    def takes_text(self, column: Options) -> bool:
        return column.parse is not None

    def has_missing_words(self, column: Options) -> bool:
        return True

    def plain(self, column: Options, value: Any) -> Any:
        return time(column.counts, value)

    def plain_times(self, column: Options, values: Any) -> Any:
        """Returns integers in the column's unit; a list, with None for NaT, if one is missing or does not fit."""
        if values.dtype.kind == "m":
            return list(values)
        counts, fits = _counts(values, column.counts)
        if fits.all():
            return counts
        found = zip(values, fits, counts.tolist(), strict=True)
        return [count if fit else None if np.isnat(value) else value for value, fit, count in found]


def format_problem(format: str) -> str | None:
    """Returns what is wrong with a time format, or None."""
    if format == ISO_8601:
        return None
    directives = [each for each in re.findall("%(.?)", format) if each != "%"]
    for each in directives:
        if each not in _FIELDS:
            return f"expected directives among {' '.join(f'%{known}' for known in _FIELDS)}, got %{each}"
    if len({_FIELDS[each] for each in directives}) < len(directives):
        return f'expected each part of a time once, got "{format}"'
    return None if directives else f'expected "{ISO_8601}" or a format such as "%Y-%m-%d %H:%M", got "{format}"'


def time(unit: str, value: Any) -> int | float | None:
    """Returns the time since 1970, counted in `unit`. None if the value is not a time; NaN for NaT.

    A date counts from its start. A time without a time zone is UTC, as in NumPy and pandas.
    """
    if isinstance(value, np.datetime64):
        count, fits = _counts(value, unit)
        return float("nan") if np.isnat(value) else int(count) if fits else None
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day, tzinfo=UTC)
    else:
        return None
    microseconds = (moment - _EPOCH) // _MICROSECOND
    if unit == "ns":
        return microseconds * 1_000 + getattr(value, "nanosecond", 0)
    whole, rest = divmod(microseconds, _PER_UNIT[unit])
    return whole + rest / _PER_UNIT[unit] if rest else whole


def _counts(values: Any, unit: str) -> tuple[Any, Any]:
    """Returns NumPy times counted in `unit`, and which counts are right: NumPy wraps around at the end of int64."""
    times = values.astype(f"datetime64[{unit}]")
    return times.astype(np.int64), times.astype("datetime64[Y]") == values.astype("datetime64[Y]")


KIND = Time()
