"""Every form a program holds rows in is read as what it is; only the job's columns can be a mistake."""

from __future__ import annotations

from collections import ChainMap
from typing import Any

import numpy as np
import pandas as pd
import pytest
from looped import over

from streamtrain.columns.forms import Columns, Names, read
from streamtrain.errors import UserMistake

NAMES = Names(("x", "name"))
COLUMNS = {"x": [1.5, None, 3.0], "name": ["a", None, "c"]}


def plain(columns: Columns) -> dict[str, Any]:
    """NaN as None, as the encoders have it."""
    listed = {name: list(cells) for name, cells in columns.named.items()}
    return {name: [None if cell is None or cell != cell else cell for cell in cells] for name, cells in listed.items()}


@over(
    "rows",
    [
        COLUMNS,
        {"x": np.array([1.5, np.nan, 3.0]), "name": np.array(["a", None, "c"], dtype=object)},
        {"x": (1.5, float("nan"), 3.0), "name": ["a", None, "c"]},
        {"x": np.ma.masked_invalid([1.5, np.nan, 3.0]), "name": pd.Series(["a", None, "c"])},
        {"note": "ignored", "x": [1.5, None, 3.0], "more": [1], "name": ["a", None, "c"]},
        ChainMap({"x": [1.5, None, 3.0]}, {"name": ["a", None, "c"]}),
        pd.DataFrame(COLUMNS),
    ],
)
def test_columns(rows: Any) -> None:
    for others in (False, True):
        found = read(rows, NAMES, others)
        assert isinstance(found, Columns) and found.rows == 3 and plain(found) == COLUMNS


def test_arrow() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra data")
    found = read(arrow.table({**COLUMNS, "n": [1, 2, 3]}), NAMES, others=True)
    assert isinstance(found, Columns) and plain(found) == {**COLUMNS, "n": [1, 2, 3]}


def test_other_columns_go_along_where_they_are_plain() -> None:
    times = np.array(["2026-01-01"] * 3, "M8[s]")
    others = {"n": np.arange(3), "half": np.zeros(3, "f2"), "wide": np.zeros((3, 2)), "t": times, "one": [1], "s": "a"}
    for given in ({**COLUMNS, **others}, pd.DataFrame({**COLUMNS, "n": range(3), "t": times})):
        found = read(given, NAMES, others=True)
        assert isinstance(found, Columns) and {"x", "name", "n"} <= found.named.keys() <= {"x", "name", "n", "half"}


def test_rows() -> None:
    rows = [{"x": 1.5}, {"name": "c", "x": np.float64(3)}]
    assert read(rows, NAMES) is rows and read(tuple(rows), NAMES) == rows == read(iter(rows), NAMES)
    assert read([ChainMap(rows[0]), rows[1]], NAMES) == rows
    for row in ({"x": 1.5, "tags": ["a"]}, {"tags": ["a", "b"], "x": 1.5}, {"tags": ["a"]}, {}):
        assert read(row, NAMES) == row
    assert read([], NAMES) == []


def test_a_part_is_a_view() -> None:
    columns = Columns({"x": np.arange(10), "name": list("abcdefghij")}, 10)
    part = columns.part(7, 12)
    assert part.rows == 3 and part.named["name"] == ["h", "i", "j"]
    assert np.shares_memory(part.named["x"], columns.named["x"])
    assert columns.part(0, 10) is columns


class Elsewhere:
    """An array that is elsewhere, as a tensor on a device."""

    def __len__(self) -> int:
        return 2

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("copy it to the host first")


@over(
    ("rows", "message"),
    [
        (5, "expected a dict, a list of dicts, a dict of arrays or a frame, got int"),
        ("text", "got str"),
        (b"bytes", "got bytes"),
        (np.zeros((2, 2)), "got ndarray"),
        ([1], r"rows\[0\]: expected a dict, got int"),
        ([{"x": 1}, None], r"rows\[1\]: expected a dict, got NoneType"),
        ({"x": [1], "name": 2}, "got an array in 'x', none in 'name'"),
        ({"x": [1], "name": [1, 2]}, r"columns of one length, got \{'x': 1, 'name': 2\}"),
        ({"x": np.zeros((2, 2))}, "expected one value a row"),
        ({"x": Elsewhere()}, "column 'x': expected what NumPy can read, got a Elsewhere: copy it to the host first"),
    ],
)
def test_what_is_no_rows(rows: Any, message: str) -> None:
    with pytest.raises(UserMistake, match=message):
        read(rows, NAMES)
