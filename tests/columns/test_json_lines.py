"""Rows of a JSON record on lines of their own."""

from __future__ import annotations

import json
from typing import Any

from long_tables import in_full_all
from looped import over
from slots import RowSlot, decode_rows

from streamtrain.columns.formats import encode_rows
from streamtrain.columns.rows import record_rows
from tests.columns.conftest import NESTED, SIMPLE, spoiled

ROWS: list[Any] = [
    {"x1": 1, "x2": 2, "carrier": "AA", "late": 1}, [1.5, 2, "B6", 0], {"x1": 3, "x2": 4, "late": 0}, {"x1": 5},
]  # fmt: skip


def lines(rows: list[Any], between: str = "\n") -> bytes:
    return between.join(json.dumps(row) for row in rows).encode()


@over(
    ("record", "trained", "filtered", "dead"),
    [
        (lines(ROWS), 3, 1, []),
        (b"\n\r\n " + lines(ROWS, "\r\n \n") + b"\n\n", 3, 1, []),
        (lines(ROWS[:1]) + b"\n", 1, 0, []),
        (lines(ROWS[:2], " "), 0, 0, ["$"]),
        (lines(ROWS[:1]) + b"\n7", 0, 0, ["$"]),
        (lines([ROWS[0], {"x1": "n/a", "x2": 1, "late": 1}, ROWS[0]]), 2, 0, ["$[1].x1"]),
        (lines([{"x1": [1, 2], "x2": [1, 2], "late": [1, 0]}, ROWS[0]]), 1, 0, ["$[0].x1"]),
        (lines([ROWS[0], {"x1": [1, 2], "x2": [1, 2], "late": [1, 0]}]), 1, 0, ["$[1].x1"]),
        (lines([{"x1": [1, 2], "x2": [1, 2], "late": [1, 0]}]) + b"\n", 2, 0, []),
        (lines([ROWS[0], [[1, 2, "AA", 0]], ROWS[0]]), 2, 0, ["$[1]"]),
        (lines([ROWS[0], {}, ROWS[0]]), 2, 1, []),
        (lines(ROWS[:1]) + b'\n{"x1": 1,}\n' + lines(ROWS[:1]), 1, 0, ["$[1]"]),
        (lines(ROWS[:2]) + b"\n" + lines(ROWS[:2], " "), 3, 0, ["$[3]"]),
        (lines([ROWS[:2], ROWS[:2]]), 2, 0, ["$[2]"]),
        (lines(ROWS[:1]) + b"\n{", 1, 0, ["$[1]"]),
    ],
)
def test_lines(same: Any, record: bytes, trained: int, filtered: int, dead: list[str]) -> None:
    found = same(SIMPLE, "json", record)
    assert (found.trained, len(found.filtered), [path for _, path, _ in found.dead]) == (trained, filtered, dead)


@in_full_all()
def test_mutated_lines(same: Any, take: Any) -> None:
    whole = lines([*ROWS, {"user": {"x1": 1}, "x1": 2, "late": 1}], "\n")
    for worse in spoiled(whole, take, 2000, b'\n\r {}[]",:07xe-'):
        for schema in (SIMPLE, NESTED):
            same(schema, "json", worse)


def test_cut_and_taken_up_at_every_row() -> None:
    record = lines([ROWS[0]] * 7 + [ROWS[3], {"x1": "n/1"}])
    _, tally = decode_rows("json", SIMPLE, record)
    assert (tally.trained, tally.filtered, tally.dead) == (7, 1, 1)
    slot = RowSlot(SIMPLE, 2, "json")
    for row in range(10):
        told = [each for _, each in slot.record(record, row)]
        assert sum(each.trained for each in told) == max(0, 7 - row)
        assert sum(each.dead for each in told) == (row < 9)
    assert slot.filler.record_rows == 9


def test_they_are_shown_and_sent_again_as_rows() -> None:
    record = lines([*ROWS, {"x1": "n/a"}]) + b"\n{"
    found = record_rows(SIMPLE, "json", record)
    assert found.rows == [*ROWS, {"x1": "n/a"}] and found.broken is not None
    assert decode_rows("json", SIMPLE, encode_rows("json", SIMPLE, found.rows))[1].trained == 3
