"""Rows that are counted and not kept: every row once, whatever a batch holds, and no more than are asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamtrain import _native
from streamtrain.columns.plan import native_plan
from streamtrain.columns.schema import Schema

COLUMNS = {"a": {"missing": "skip"}, "at": {"role": "event_time", "unit": "ms"}, "y": {"role": "label"}}
SCHEMA = Schema.from_columns(COLUMNS, "mean_squared_error")
ROW = {"a": 1, "y": 0}


def counter(rows: int) -> _native.BatchFiller:
    layout = _native.SlotLayout.make(rows, 1, SCHEMA.block_specs())
    return _native.BatchFiller("json", native_plan(SCHEMA, layout))


def record(*times: int | None) -> bytes:
    """A row for each; without a time one that cannot be used."""
    rows: list[Any] = [{**ROW, "at": time} if time is not None else {"a": "x"} for time in times]
    return json.dumps(rows).encode()


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 7, 100])
def test_all_rows_of_records_larger_than_a_batch(batch_rows: int) -> None:
    records = [record(5, 6, None, 70, 8, 9), record(1), record(*range(20)), b"{", b'{"y": 1}', record(3, 4)]
    tally = counter(batch_rows).count(records)
    assert (tally.trained, tally.dead, tally.filtered, tally.newest_event_time_ms) == (28, 2, 1, 70)
    assert [(start, to, remainder) for start, to, *_, remainder in tally.dead_rows][:2] == [
        (2, 3, False),
        (0, 1, True),
    ]


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_no_more_than_are_wanted(batch_rows: int) -> None:
    filler, given = counter(batch_rows), record(1, 2, None, 9, 3, None)
    for most, newest, dead, passed in ((0, -1, 0, 0), (1, 1, 0, 1), (2, 2, 0, 2), (3, 9, 1, 4), (4, 9, 1, 5)):
        tally = filler.count([given], most=most)
        assert (tally.trained, tally.newest_event_time_ms) == (most, newest)
        assert tally.dead == dead and filler.record_rows == passed
    assert filler.count([given], from_row=3).trained == 2
    assert filler.count([given, given], from_row=3).trained == 6


def test_a_batch_takes_no_more_than_its_slot_holds() -> None:
    filler = counter(4)
    with pytest.raises(ValueError, match="no slot is open"):
        filler.fill(record(1))
    with pytest.raises(ValueError, match="smaller than its layout"):
        filler.open(bytearray(8))
    layout = _native.SlotLayout.make(4, 1, SCHEMA.block_specs())
    filler.open(bytearray(layout.slot_bytes))
    with pytest.raises(ValueError, match="no record is begun"):
        filler.more()
    assert not filler.fill(record(1, 2, 3), until=2) and filler.rows == 2
    for until in (1, 5):
        with pytest.raises(ValueError, match="its rows at least"):
            filler.more(until)
    assert filler.more() and filler.close() == 3
    with pytest.raises(ValueError, match="no slot is open"):
        filler.more()
