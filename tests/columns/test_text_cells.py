"""Numbers and times written as text: native against the slow reading, at every edge of a calendar and of a zone."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from example_format import example_format, untyped_formats
from long_tables import examples
from looped import over
from slots import RowSlot

from streamtrain.columns.kinds import DEFAULT, FEATURE, kinds
from streamtrain.columns.kinds.kind import Kind
from streamtrain.columns.kinds.parsed import Parsed
from streamtrain.columns.kinds.zones import offsets
from streamtrain.columns.schema import Schema
from tests.oracles.kinds._numbers import float32
from tests.oracles.records import encode_rows

LATE = {"role": "label"}
NUMBERS = [
    "12.5", " 12.5 ", "+3", "-3", "--3", "+-3", "007", "1.", ".5", ".", "", " ", "1e5", "1E-5", "1e", "e5", "1e+05",
    "0x10", "1_000", "1,5", "inf", "-Infinity", "nan", "1e400", "-1e400", "0.1e400", "1e-400", "0.000001e-400",
    "1e-5000", "5e-324", "2e-324", "0e99999", "100000000000000000000e-400", "3.4028235e38", "3.4028236e38", "1e38",
    "٣", "12 5", "1\u00a0", "\t1", "9" * 400, "0." + "0" * 400 + "1", "0" * 400 + "1",
    "123456789012345678901234567890.5e-20", "-0", "-0.0",
]  # fmt: skip
FORMATS = ["iso8601", "%d/%m/%Y %H:%M", "%Y%m%d%H%M%S", "%b %d %Y %I:%M %p", "%d %B %y", "%Y-%j",
           "%H:%M:%S.%f %z %d.%m.%Y",
           "100%% %Y-%m-%d"]  # fmt: skip
TIMES = [
    "2026-11-22T02:10:00Z", "2026-11-22t02:10:00z", "2026-11-22", "2026-11-22 02:10", "2026-11-22T02",
    "2026-11-22T02:10:", "2026-11-22T02:10:00.1", "2026-11-22T02:10:00,123456789123Z", "2026-11-22T02:10:00.",
    "2026-11-22T02:10:00+01:30", "2026-11-22T02:10:00-0130", "2026-11-22T02:10:00+01", "2026-11-22T02:10:00+1",
    "2026-11-22T02:10:00+24:00", "2026-11-22T02:10:00+01:60", "2026-11-22T02:10:00 Z", "2026-02-29", "2024-02-29",
    "1900-02-29", "2000-02-29", "2026-02-30", "2026-13-01", "2026-00-01", "2026-01-00", "2016-12-31T23:59:60Z",
    "2016-12-31T23:59:61Z", "2016-12-31T24:00:00Z", "10000-01-01", "0001-01-01T00:00:00Z", "0000-01-01", "-001-01-01",
    "9999-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z", "01/02/2026 03:04", "1/2/2026 3:4", "31/04/2026 00:00",
    "20261122021000", "2026112202100", "Nov 22 2026 12:00 am", "nov 22 2026 12:30 PM", "Nov 22 2026 13:00 PM",
    "Nov 22 2026 0:00 AM", "22 November 26", "22 november 69", "22 Nov 26", "2026-366", "2024-366", "2026-1",
    "2026-000", "12:34:56.789 +02:00 22.11.2026", "100% 2026-11-22", "100 2026-11-22", "today", "2026-11-01 01:30",
    "2026-03-08 02:30", "2026-03-29 02:30:00", "\u0662026-11-22",
]  # fmt: skip


def parses_numbers(kind: Kind[Any]) -> bool:
    return issubclass(kind.options, Parsed) and kind.block is not None


def schema(**settings: Any) -> Schema:
    return Schema.from_columns(
        {"x": {}, "at": {"role": "event_time", **settings}, "late": LATE}, "binary_cross_entropy"
    )


def native_time(slot: RowSlot, text: str) -> int | None:
    ((_, tally),) = slot.record(json.dumps({"x": 1, "at": text, "late": 1}).encode())
    return tally.newest_event_time_ms if tally.trained else None


def is_alone(name: str, kind: Any) -> bool:
    """Returns whether a column of it holds one cell."""
    return name == DEFAULT or kind.role != FEATURE


ALONE = [name for name, kind in kinds().items() if parses_numbers(kind) and is_alone(name, kind)]


@over("role", ALONE)
def test_numbers_as_text(role: str, same: Any) -> None:
    parsed = {"parse": "decimal"} | ({"role": role} if role != "number" else {})
    others = {"y": {}} | ({"late": LATE} if role != "label" else {})
    schema = Schema.from_columns({"x": parsed, **others}, "mean_squared_error")
    found = [same(schema, "json", json.dumps({"x": text, "y": 1, "late": 1}).encode()) for text in NUMBERS]
    assert sum(each.trained for each in found) > 20 and sum(len(each.dead) for each in found) > 10


DECIMAL = Schema.from_columns({"x": {"parse": "decimal"}, "late": LATE}, "binary_cross_entropy")


@over("name", untyped_formats())
def test_texts_and_fractions_may_stand_in_one_column(name: str) -> None:
    slot = RowSlot(DECIMAL, 4, name)
    rows = [{"x": x, "late": 1} for x in ("1.5", 0.1, 2, 1e-7)]
    ((count, tally),) = slot.record(encode_rows(example_format(name), slot.schema, rows))
    assert (count, tally.trained) == (4, 4)
    assert slot.views["numbers"][:, 0].tolist() == [float32(x) for x in (1.5, 0.1, 2, 1e-7)]


@over("zone", [None, "America/New_York", "Europe/Berlin", "Asia/Kathmandu"])
@over("format", FORMATS)
def test_times_as_text(format: str, zone: str | None, same: Any) -> None:
    columns, chance, changed = schema(parse=format, **({"zone": zone} if zone else {})), random.Random(format), []
    for _ in range(examples(900)):  # a character changed
        text = chance.choice(TIMES)
        at = chance.randrange(len(text))
        changed.append(text[:at] + chance.choice("0123456789-:T+Zz./ apm%") + text[at + 1 :])
    rows = [json.dumps({"x": 1, "at": text, "late": 1}).encode() for text in (*TIMES, *changed)]
    taken = sum(same(columns, "json", row).trained for row in rows[: len(TIMES)])
    assert taken or (zone is None and "z" not in format)
    for row in rows[len(TIMES) :]:
        same(columns, "json", row)


@over("zone", ["America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"])
def test_every_change_of_a_zone(zone: str) -> None:
    """The second before it, at it and an hour around it; by the zone's own rules."""
    table, info = offsets(zone), ZoneInfo(zone)
    slot = RowSlot(schema(parse="iso8601", zone=zone), 4, "json")
    for seconds in table[::2][-120:]:
        for shift in (-3600, -1, 0, 1, 1800, 3600):
            local = datetime(1970, 1, 1) + timedelta(seconds=seconds + shift)
            expected = max(local.replace(tzinfo=info).astimezone(UTC).timestamp() * 1000, -1)
            assert native_time(slot, local.isoformat()) == expected, local
