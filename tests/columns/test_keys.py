"""Times in a column's unit, keys as bytes."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
from looped import over

from streamtrain.columns.column import Column
from streamtrain.columns.keys import key_bytes
from streamtrain.columns.kinds.time import time

MOMENT = datetime(2026, 3, 4, 5, 6, 7, 250_000)
MS = 1_772_600_767_250
EAST = timezone(timedelta(hours=2))


@over(
    "value",
    [
        MOMENT, MOMENT.replace(tzinfo=UTC), MOMENT.replace(tzinfo=UTC).astimezone(EAST), pd.Timestamp(MOMENT),
        pd.Timestamp(MOMENT, tz="UTC").tz_convert("Asia/Tokyo"), np.datetime64(MOMENT), np.datetime64(MOMENT, "ns"),
    ],
)  # fmt: skip
def test_a_time_in_every_unit(value: Any) -> None:
    assert [time(unit, value) for unit in ("ms", "us", "ns")] == [MS, MS * 1_000, MS * 1_000_000]
    assert time("s", value) in (MS / 1000, MS // 1000)


def test_dates_and_what_is_no_time() -> None:
    assert time("s", date(2026, 3, 4)) == 1_772_582_400 and time("ms", datetime(1969, 12, 31, 23, 59, 59)) == -1000
    assert time("ns", pd.Timestamp(MOMENT) + pd.Timedelta(5, "ns")) == MS * 1_000_000 + 5
    assert time("ms", timedelta(1)) is None and time("ms", object()) is None
    assert np.isnan(time("ms", np.datetime64("NaT")))  # type: ignore[arg-type]
    column = Column(role="event_time")
    assert column.entry.plain_times(column, np.array([MOMENT, MOMENT], "M8[us]")).tolist() == [MS, MS]
    assert column.entry.plain_times(column, np.array([MOMENT, "NaT"], "M8[us]")) == [MS, None]


def plain(column: Column, value: Any) -> Any:
    return column.entry.plain(column, value)


def test_only_columns_that_can_take_other_values() -> None:
    assert plain(Column(role="event_time", unit="us"), MOMENT) == MS * 1_000
    assert plain(Column(), MOMENT) is None and plain(Column(kind="category", buckets=4), MOMENT) is None
    assert plain(Column(role="key"), UUID(int=5)) == str(UUID(int=5))


@over(
    ("cell", "key"),
    [
        ("é", "é".encode()), (b"\xff", b"\xff"), (7, b"7"), (np.int64(7), b"7"), (True, b"True"), (1.5, b"1.5"),
        (None, None), (float("nan"), None), (np.float32("nan"), None), (pd.NA, None), (pd.NaT, None),
    ],
)  # fmt: skip
def test_keys(cell: Any, key: bytes | None) -> None:
    assert key_bytes(cell) == key
