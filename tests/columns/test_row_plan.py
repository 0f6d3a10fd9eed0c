"""A job's plan: records and rows as arrays by column, in every kind's shape."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from streamtrain import Job, RecordError, UserMistake
from streamtrain.columns.row_plan import BATCH_ROWS, Lists

TABLES: dict[str, Any] = {
    "columns": {
        "a": {"missing": 5},
        "b": {"kind": "vector", "size": 2},
        "raw": {"role": "input"},
        "c": {"kind": "category", "buckets": 10},
        "l": {"kind": "category", "buckets": 10, "list": True, "missing": ""},
        "w": {"kind": "sparse", "buckets": 100, "missing": 0},
        "y": {"role": "label"},
    },
    "transforms": {"double": {"expr": "raw * 2"}, "seen": {"count": "c"}},
    "records": {"where": "a > 0"},
    "model": {"loss": "mean_squared_error"},
}
ROWS = [
    {"a": 1, "b": [1, 2], "raw": 4, "c": "x", "l": ["u", "v"], "w": [[3, 1.5], [4, 2]], "y": 2},
    {"b": [3, 4], "raw": 0.5, "c": "y", "y": 3},
    {"a": -1, "b": [3, 4], "raw": 0.5, "c": "y", "y": 3},
]


def test_columns_as_the_model_has_them() -> None:
    plan = Job.from_tables(TABLES).plan()
    found = plan.decode([json.dumps(ROWS[:1]).encode(), json.dumps(ROWS[1:]).encode()])
    assert (found.count, found.filtered, found.left_out) == (2, 1, [])
    assert list(found) == ["a", "b", "c", "l", "w", "w.scale", "y", "double", "seen"]
    for name, expected in {"a": [1, 5], "b": [[1, 2], [3, 4]], "y": [2, 3], "double": [8, 1]}.items():
        assert np.array_equal(np.asarray(found[name]), np.array(expected, np.float32)), name
        assert np.asarray(found[name]).dtype == np.float32
    assert len(set(np.asarray(found["seen"]).tolist())) == 2
    words, scale = found["w"], found["w.scale"]
    assert isinstance(words, Lists) and isinstance(scale, Lists)
    assert words.offsets.tolist() == [0, 2, 2] and words.values.tolist() == [3, 4]
    assert scale.values.tolist() == [1.5, 2]
    assert np.asarray(found["c"]).dtype == np.int32 and len(set(np.asarray(found["c"]).tolist())) == 2


def test_a_frame_and_many_batches_give_the_same() -> None:
    plan = Job.from_tables(TABLES).plan()
    many = [{**row, "y": number} for number, row in enumerate(ROWS * BATCH_ROWS)]
    found = plan.transform(many)
    assert found.count == 2 * BATCH_ROWS and found.filtered == BATCH_ROWS
    bags = found["l"]
    assert isinstance(bags, Lists)
    assert bags.offsets[-1] == 2 * BATCH_ROWS == len(bags.values) and (np.diff(bags.offsets)[::2] == 2).all()
    assert np.array_equal(np.asarray(found["y"]), [row["y"] for row in many if row.get("a") != -1])
    decoded = plan.decode([json.dumps(many).encode()])
    assert all(np.array_equal(np.asarray(found[name]), np.asarray(decoded[name])) for name in ("a", "b", "c", "y"))


def test_what_cannot_be_used_is_told() -> None:
    plan = Job.from_tables(TABLES).plan()
    records = [json.dumps(ROWS).encode(), b'[{"a": 1}, ', json.dumps({**ROWS[0], "b": [1]}).encode()]
    with pytest.raises(RecordError, match=r"record 1, row 0 at \$.*"):
        plan.decode(records)
    found = plan.decode(records, errors="leave_out")
    assert found.count == 2 and [each.record for each in found.left_out] == [1, 1, 2]
    with pytest.raises(UserMistake, match="leave_out"):
        plan.decode(records, errors="skip")  # type: ignore[arg-type]


def test_requests_have_no_label() -> None:
    rows = [{name: cell for name, cell in row.items() if name != "y"} for row in ROWS]
    found = Job.from_tables(TABLES).plan(requests=True).transform(rows)
    assert found.count == 3 and "y" not in found
