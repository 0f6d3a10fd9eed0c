"""What is said of columns of every kind: as records give them, whatever is missing."""

from __future__ import annotations

import json
from typing import Any

from streamtrain import Job
from streamtrain.analysis.summary import Summary

COLUMNS: dict[str, Any] = {
    "a": {"missing": 5}, "v": {"kind": "vector", "size": 2}, "raw": {"kind": "time"}, "inner": {"path": "in.x"},
    "t": {"role": "event_time", "parse": "iso8601", "missing": 0}, "c": {"kind": "category", "buckets": 10},
    "l": {"kind": "category", "buckets": 10, "list": True}, "w": {"kind": "sparse", "buckets": 100, "missing": 0},
    "weight": {"role": "weight", "missing": "skip"}, "y": {"role": "label", "classes": ["no", "yes"]},
    "k": {"role": "key"},
}  # fmt: skip
TABLES = {
    "columns": COLUMNS, "model": {"loss": "softmax_cross_entropy"},
    "transforms": {"hour": {"time": "raw", "parts": ["hour"]}},
}  # fmt: skip
ROWS = [
    {"a": 1, "v": [1, 2], "raw": 7, "in": {"x": 3}, "t": "2026-01-01T00:00:00Z", "c": "x", "l": ["p", "q"],
     "w": [[1, 2.5]], "weight": 2, "y": "yes", "k": 1},
    {"v": [0, 0], "in": {}, "l": [], "c": "", "y": "no"},
    {},
    {"a": "bad", "c": "z"},
    {"in": {"x": "bad"}},
    {"a": -1, "v": [1, 5], "c": 7, "l": ["p"], "weight": 3, "y": None},
]  # fmt: skip


def test_every_kind_of_column() -> None:
    summary = Summary(Job.from_tables(TABLES))
    records = [json.dumps(ROWS[:2]).encode(), *(json.dumps(row).encode() for row in ROWS[2:]), b"[", b'{"a": 2}']
    assert list(summary.add(records))[-1] == 5
    found = summary.document()
    assert (found["rows"], found["unusable_rows"]) == (8, 3)
    told = {name: (each["holds"], each["missing"], each.get("distinct")) for name, each in found["columns"].items()}
    assert told == {
        "a": ("number", 2, 3), "v": ("number", 3 - 1, 4), "raw": ("time", 4, None), "inner": ("number", 4, 1),
        "t": ("time", 4, None), "c": ("text", 3, 2), "l": ("list", 3, 2), "w": ("list", 4, 1),
        "weight": ("number", 3, 2), "y": ("text", 3, 2),
    }  # fmt: skip
    assert [name for name, each in found["columns"].items() if each["unusable"]] == ["a", "inner"]
    numbers = found["columns"]["a"]
    assert (numbers["least"], numbers["largest"], numbers["mean"]) == (-1, 2, 2 / 3)
    assert sum(numbers["histogram"]["rows"]) == 3 and len(numbers["quantiles"]) == 7


def test_drift_counts_missing_cells_and_other_words() -> None:
    job = Job.from_tables(TABLES)

    def of(rows: list[dict[str, Any]]) -> Summary:
        summary = Summary(job)
        assert list(summary.add([json.dumps(rows).encode()]))
        return summary

    before = of([{"a": number, "c": f"w{number % 5}", "l": ["p"]} for number in range(1000)])
    same = of([{"a": number + 0.1, "c": f"w{number % 5}", "l": ["p"]} for number in range(1000)])
    drift = {name: each.get("drift", 0) for name, each in same.document(before)["columns"].items()}
    assert max(drift.values()) < 0.01
    half = of([{"a": number} if number % 2 else {} for number in range(1000)])
    assert half.document(before)["columns"]["a"]["drift"] > 0.25
    moved = of([{"a": 2 * number, "c": f"other{number % 5}"} for number in range(1000)])
    drift = {name: each.get("drift", 0) for name, each in moved.document(before)["columns"].items()}
    assert min(drift["a"], drift["c"], drift["l"]) > 0.25 and drift["weight"] < 0.01
