"""Python rows into a slot: the same values, checks and reasons as through a record; frames; batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from looped import over
from slots import RowSlot

from streamtrain.columns.formats import format_names, record_format
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake


def test_one_row(schemas: dict[str, Schema]) -> None:
    filler = RowSlot(schemas["simple"].for_requests(), 8)
    assert filler.slot.ctypes.data % 64 == 0
    assert filler.fill_row({"x1": 1.5, "x2": np.float32(2), "carrier": "AA"}) is None
    assert filler.views["numbers"][0].tolist() == [1.5, 2.0] and filler.views["weight"][0] == 1
    dead = filler.fill_row({"x1": "n/a", "x2": 2})
    assert dead is not None and str(dead) == '$.x1: expected number, got "n/a"'
    dead = filler.fill_row({"x1": 1, "x2": object()})
    assert dead is not None and str(dead) == "$.x2: expected number, got object"


@over(
    "value",
    [
        1,
        1.0,
        True,
        np.float64(1),
        np.float32(1),
        np.float16(1),
        np.int8(1),
        np.uint64(1),
        np.bool_(True),
        np.array(1.0),
    ],
)
def test_scalars_of_all_kinds(schemas: dict[str, Schema], value: Any) -> None:
    filler = RowSlot(schemas["simple"], 1)
    assert filler.fill_row({"x1": value, "x2": 0, "late": value}) is None
    assert filler.views["numbers"][0, 0] == 1 and filler.views["label"][0, 0] == 1


@over("value", ["x", [1], {}, b"1", 1j, object(), float("nan"), 10**400, np.float32("inf"), "\ud800"])
def test_values_no_number_column_takes(schemas: dict[str, Schema], value: Any) -> None:
    filler = RowSlot(schemas["simple"], 1)
    dead = filler.fill_row({"x1": value, "x2": 0, "late": 1})
    assert dead is not None and dead.path == "$.x1"


def test_lists_in_column_order(schemas: dict[str, Schema]) -> None:
    requests = schemas["simple"].for_requests()
    filler = RowSlot(requests, 8)
    for row in ([1, 2, "AA"], (1, 2, "AA", None), [1.0, 2.0, "AA", 1]):
        [(count, tally)] = list(filler.batches(row))
        assert (count, tally.trained) == (1, 1)
    [(_, tally)] = list(filler.batches([[1, 2, "AA"], [1, 2]]))
    assert (tally.trained, tally.dead) == (1, 1) and tally.dead_rows[0].path == "$[1]"


def test_columns_and_frames(schemas: dict[str, Schema]) -> None:
    simple = schemas["simple"]
    columns = {"x1": np.arange(100), "x2": np.arange(100.0), "carrier": ["AA", "B6"] * 50, "late": np.ones(100, bool)}
    frames: list[Any] = [columns]
    pandas = pytest.importorskip("pandas", reason="pandas comes with the extra demo")
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra data")
    frames += [pandas.DataFrame(columns), pyarrow.table(columns)]
    filler = RowSlot(simple, 64)
    for frame in frames:
        batches = [
            (count, tally.trained, filler.views["numbers"][0, 0].item()) for count, tally in filler.batches(frame)
        ]
        assert batches == [(64, 64, 0.0), (36, 36, 64.0)]
    holes = pandas.DataFrame({"x1": [1.0, None], "x2": [1, 2], "carrier": [None, "AA"], "late": [1, 0]})
    [(_, tally)] = list(filler.batches(holes))
    assert tally.trained == 1 and tally.dead_rows[0].reason == "expected number, got nothing (missing)"


def test_rows_that_are_none(schemas: dict[str, Schema]) -> None:
    filler = RowSlot(schemas["simple"], 4)
    with pytest.raises(UserMistake, match="expected a dict"):
        list(filler.batches(5))
    assert [count for count, _ in filler.batches([])] == [0]
    with pytest.raises(UserMistake, match="one length"):
        list(filler.batches({"x1": [1, 2], "x2": [1]}))
    with pytest.raises(UserMistake, match=", ".join(format_names())):
        record_format("arvo-x")
    with pytest.raises(UserMistake, match="did you mean 'msgpack'"):
        record_format("msgpak")
