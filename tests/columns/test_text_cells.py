"""Numbers and times written as text: native against the slow reading, at every edge of a calendar and of a zone."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from example_format import example_format, untyped_formats
from looped import over
from slots import RowSlot

from streamtrain.columns.column import Column
from streamtrain.columns.formats import encode_rows
from streamtrain.columns.kinds import DEFAULT, FEATURE, kinds
from streamtrain.columns.kinds.cell import float32
from streamtrain.columns.kinds.kind import Kind, Wrong
from streamtrain.columns.kinds.parsed import Parsed, number_of
from streamtrain.columns.kinds.time_text import moment
from streamtrain.columns.kinds.zones import offsets
from streamtrain.columns.schema import Schema

LATE = {"role": "label"}
NUMBERS = [
    "12.5", " 12.5 ", "+3", "-3", "--3", "+-3", "007", "1.", ".5", ".", "", " ", "1e5", "1E-5", "1e", "e5",
    "1e+05", "0x10",
    "1_000", "1,5", "inf", "-Infinity", "nan", "1e400", "-1e400", "0.1e400", "1e-400", "0.000001e-400", "1e-5000",
    "5e-324",
    "2e-324", "0e99999", "100000000000000000000e-400", "3.4028235e38", "3.4028236e38", "1e38", "٣", "12 5",
    "1\u00a0", "\t1",
    "9" * 400, "0." + "0" * 400 + "1", "0" * 400 + "1", "123456789012345678901234567890.5e-20", "-0", "-0.0",
]  # fmt: skip
FORMATS = ["iso8601", "%d/%m/%Y %H:%M", "%Y%m%d%H%M%S", "%b %d %Y %I:%M %p", "%d %B %y", "%Y-%j",
           "%H:%M:%S.%f %z %d.%m.%Y",
           "100%% %Y-%m-%d"]  # fmt: skip
TIMES = [
    "2026-11-22T02:10:00Z", "2026-11-22t02:10:00z", "2026-11-22", "2026-11-22 02:10", "2026-11-22T02",
    "2026-11-22T02:10:",
    "2026-11-22T02:10:00.1", "2026-11-22T02:10:00,123456789123Z", "2026-11-22T02:10:00.", "2026-11-22T02:10:00+01:30",
    "2026-11-22T02:10:00-0130", "2026-11-22T02:10:00+01", "2026-11-22T02:10:00+1", "2026-11-22T02:10:00+24:00",
    "2026-11-22T02:10:00+01:60", "2026-11-22T02:10:00 Z", "2026-02-29", "2024-02-29", "1900-02-29", "2000-02-29",
    "2026-02-30",
    "2026-13-01", "2026-00-01", "2026-01-00", "2016-12-31T23:59:60Z", "2016-12-31T23:59:61Z", "2016-12-31T24:00:00Z",
    "10000-01-01", "0001-01-01T00:00:00Z", "0000-01-01", "-001-01-01", "9999-12-31T23:59:59.999Z",
    "1969-12-31T23:59:59.999Z",
    "01/02/2026 03:04", "1/2/2026 3:4", "31/04/2026 00:00", "20261122021000", "2026112202100", "Nov 22 2026 12:00 am",
    "nov 22 2026 12:30 PM", "Nov 22 2026 13:00 PM", "Nov 22 2026 0:00 AM", "22 November 26", "22 november 69",
    "22 Nov 26",
    "2026-366", "2024-366", "2026-1", "2026-000", "12:34:56.789 +02:00 22.11.2026", "100% 2026-11-22",
    "100 2026-11-22", "today",
    "2026-11-01 01:30", "2026-03-08 02:30", "2026-03-29 02:30:00", "\u0662026-11-22",
]  # fmt: skip


def parses_numbers(kind: Kind[Any]) -> bool:
    return issubclass(kind.options, Parsed) and kind.block is not None


def schema(**settings: Any) -> Schema:
    return Schema.from_columns(
        {"x": {}, "at": {"role": "event_time", **settings}, "late": LATE}, "binary_cross_entropy"
    )


def native_time(slot: RowSlot, text: str) -> int | None:
    ((_, told),) = slot.record(json.dumps({"x": 1, "at": text, "late": 1}).encode())
    return told.newest_event_time_ms if told.trained else None


def slow_time(format: str, zone: str | None, text: str) -> int | None:
    """What a decoder tells of the newest: -1 where all is before 1970."""
    try:
        return max(moment(format, zone, text), -1) if text else None
    except Wrong:
        return None


def is_alone(name: str, kind: Any) -> bool:
    """Whether a column of it holds one cell."""
    return name == DEFAULT or kind.role != FEATURE


ALONE = [name for name, kind in kinds().items() if parses_numbers(kind) and is_alone(name, kind)]


@over("role", ALONE)
def test_numbers_as_text(role: str) -> None:
    parsed = {"parse": "decimal"} | ({"role": role} if role != "number" else {})
    others = {"y": {}} | ({"late": LATE} if role != "label" else {})
    slot = RowSlot(Schema.from_columns({"x": parsed, **others}, "mean_squared_error"), 4, "json")
    block = {"number": "numbers"}.get(role, role)
    for text in NUMBERS:
        ((rows, told),) = slot.record(json.dumps({"x": text, "y": 1, "late": 1}).encode())
        try:
            expected = float32(number_of(Column(parse="decimal"), text)) if text else None
            if role == "weight" and expected is not None and float(number_of(Column(parse="decimal"), text)) < 0:
                expected = None
        except Wrong:
            expected = None
        found = slot.views[block][0, 0] if rows else None
        assert (found is None) == (expected is None) and (found is None or found == expected), text
        assert told.trained + told.dead == 1


DECIMAL = Schema.from_columns({"x": {"parse": "decimal"}, "late": LATE}, "binary_cross_entropy")


@over("name", untyped_formats())
def test_texts_and_fractions_may_stand_in_one_column(name: str) -> None:
    slot = RowSlot(DECIMAL, 4, name)
    rows = [{"x": x, "late": 1} for x in ("1.5", 0.1, 2, 1e-7)]
    ((count, told),) = slot.record(encode_rows(example_format(name), slot.schema, rows))
    assert (count, told.trained) == (4, 4)
    assert slot.views["numbers"][:, 0].tolist() == [float32(x) for x in (1.5, 0.1, 2, 1e-7)]


def test_a_text_is_no_number_where_nobody_says_so() -> None:
    slot = RowSlot(Schema.from_columns({"x": {}, "late": LATE}, "binary_cross_entropy"), 4, "json")
    ((_, told),) = slot.record(b'{"x": "12.5", "late": 1}')
    assert told.dead_rows[0][3] == 'expected number, got "12.5"'


@over("zone", [None, "America/New_York", "Europe/Berlin", "Asia/Kathmandu"])
@over("format", FORMATS)
def test_times_as_text(format: str, zone: str | None) -> None:
    slot = RowSlot(schema(parse=format, **({"zone": zone} if zone else {})), 4, "json")
    taken = 0
    for text in TIMES:
        found = native_time(slot, text)
        assert found == slow_time(format, zone, text), text
        taken += found is not None
    chance = random.Random(format)
    for _ in range(300):  # a character changed
        text = chance.choice(TIMES)
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice("0123456789-:T+Zz./ apm%") + text[at + 1 :]
        assert native_time(slot, text) == slow_time(format, zone, text), text
    assert taken or (zone is None and "z" not in format)


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


@over(
    ("settings", "said"),
    [
        ({"parse": "iso-8601"}, 'parse: expected "iso8601" or a format'),
        ({"parse": "%Y-%q"}, "got %q"),
        ({"parse": "%Y %Y"}, "each part of a time once"),
        ({"parse": "%b %B"}, "each part of a time once"),
        ({"parse": "iso8601", "zone": "Europe/Berlln"}, "did you mean 'Europe/Berlin'"),
        ({"zone": "Europe/Berlin"}, "say parse too"),
        ({"parse": "iso8601", "zone": "localtime"}, "a name of the IANA time zone database"),
    ],
)
def test_mistakes_are_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("?", r"\?")):
        Column(role="event_time", **settings)
    with pytest.raises(ValueError, match='expected "decimal"'):
        Column(parse="float")
    with pytest.raises(ValueError, match="only a number or a time can be parsed"):
        Column(kind="category", buckets=4, parse="decimal")
