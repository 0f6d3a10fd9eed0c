"""Every form a program holds rows in gives the same columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamtrain.clients.rows import columns_of
from streamtrain.errors import UserMistake

COLUMNS = {"x": [1.5, None, 3.0], "name": ["a", None, "c"]}


def frames() -> list[Any]:
    pandas = pytest.importorskip("pandas")
    arrow = pytest.importorskip("pyarrow")
    return [pandas.DataFrame(COLUMNS), arrow.table(COLUMNS)]


@pytest.mark.parametrize(
    "rows",
    [
        COLUMNS,
        {"x": np.array([1.5, np.nan, 3.0]), "name": np.array(["a", None, "c"], dtype=object)},
        {"x": (1.5, float("nan"), 3.0), "name": ["a", None, "c"]},
        [{"x": 1.5, "name": "a"}, {"x": None}, {"name": "c", "x": np.float64(3)}],
    ],
)
def test_forms(rows: Any) -> None:
    assert columns_of(rows) == (COLUMNS, 3, False)


def test_frames() -> None:
    for frame in frames():
        assert columns_of(frame) == (COLUMNS, 3, False)


def test_one_row() -> None:
    assert columns_of({"x": np.float32(0.5), "n": np.int64(2), "on": True}) == (
        {"x": [0.5], "n": [2], "on": [True]},
        1,
        True,
    )
    assert columns_of([]) == ({}, 0, False)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (5, "expected a dict, a list of dicts, a dict of arrays or a frame, got int"),
        ("text", "got str"),
        ([1], r"rows\[0\]: expected a dict, got int"),
        ({"x": [1], "y": 2}, "got an array in 'x', none in 'y'"),
        ({"x": [1], "y": [1, 2]}, r"columns of one length, got \{'x': 1, 'y': 2\}"),
        ({"x": float("inf")}, "column 'x': expected a finite number, got inf"),
        ({"x": np.zeros((2, 2))}, "expected one value a row"),
    ],
)
def test_what_is_no_rows(rows: Any, message: str) -> None:
    with pytest.raises(UserMistake, match=message):
        columns_of(rows)
