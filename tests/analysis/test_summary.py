"""Tests of summaries of every kind of column, and of sketches against NumPy's counts, within their stated errors."""

from __future__ import annotations

import json
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import Job
from streamtrain._native import murmur3
from streamtrain.analysis.collisions import KEPT, warnings
from streamtrain.analysis.sketches import DISTINCT_ERROR, EXACT, QUANTILE_ERROR, Distinct, Spread, stability_index
from streamtrain.analysis.summary import Summary
from streamtrain.columns.kinds.category import hash_seed
from tests.oracles.sparse_text import vw_hash, vw_seed

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
    facts = {name: (each["holds"], each["missing"], each.get("distinct")) for name, each in found["columns"].items()}
    assert facts == {
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


def bucket_of(name: str, text: str, bits: int, buckets: int, vw_bits: int) -> int:
    """The job's own, of a column of the next test."""
    if name in "vf":
        return vw_hash(text.encode(), vw_seed("f" if name == "f" else "")) % (1 << vw_bits)
    is_index = name == "s" and text == "1"
    return 1 if is_index else murmur3(text.encode(), hash_seed(name), bits) % buckets


@over("seed", range(12), sampled=True)
def test_frequent_values_in_one_bucket_are_found(seed: int) -> None:
    """Only this finds hashes or buckets that are not the job's, and rare values that count as frequent."""
    rng = np.random.default_rng(seed)
    values, buckets, bits = int(rng.integers(1, 30)), int(rng.integers(2, 300)), int(rng.choice([32, 64]))
    words = np.repeat([*(f"w{at}" for at in range(values)), ""], rng.integers(500, 1_500, values + 1)).tolist()
    cells = rng.permutation([*words, *["seldom"] * 30, *(f"rare{at}" for at in range(KEPT))]).tolist()
    hashed = {"kind": "category", "buckets": buckets, "hash_bits": bits, "missing": "none"}
    names, indexes = int(rng.integers(1, 9)), 300 + buckets  # of Vowpal Wabbit's hash, bits
    by_vw = {"kind": "sparse", "buckets": indexes, "vw_bits": names, "missing": 0}
    columns = {"c": hashed, "k": {"kind": "category", "vocabulary": {"capacity": 99}, "missing": "none"},
               "l": {**hashed, "list": True}, "t": {**hashed, "kind": "text", "ngrams": [1, 2]},
               "s": {**hashed, "kind": "sparse", "missing": 0}, "v": by_vw}  # fmt: skip
    tables = {"columns": {**columns, "y": {"role": "label", "missing": 0}}}
    summary, there = Summary(Job.from_tables(tables)), [cell for cell in cells if cell]
    pairs = [[[cell, 2]] * bool(cell) + [["also", 1], [1, 1]] for cell in cells]
    rows = [{"c": cell, "k": cell, "l": [cell, "", "also"], "t": f"{cell} Also", "s": found, "v": found}
            for cell, found in zip(cells, pairs, strict=True)] + [{"s": [[buckets, 1]]}]  # fmt: skip
    assert list(summary.add([json.dumps(rows).encode()]))
    assert len(summary.columns["c"].hashes._values) <= KEPT
    document = summary.document()
    assert document["columns"]["s"]["unusable"] == document["unusable_rows"] == 1, "no index of the job's"
    of_vw = {**by_vw, "vw_bits": None, "namespaces": ["f", "g"]}
    records = {"records": {"format": "vw", "bits": names}, "columns": {"f": of_vw, "y": {"role": "label"}}}
    summary = Summary(Job.from_tables(records))
    assert list(summary.add(["\n".join(f"1 |f {cell} also:2 1:3" for cell in cells).encode()]))
    document["columns"] |= summary.document()["columns"]
    as_pairs = [*there, *["also"] * len(cells), *["1"] * len(cells)]
    entries = {
        "c": [cell or "none" for cell in cells], "l": [*there, *["also"] * len(cells)],
        "t": [*there, *["also"] * len(cells), *(f"{cell} also" for cell in there)],
        "s": as_pairs, "v": as_pairs, "f": as_pairs,
    }  # fmt: skip
    warned = []
    for name, texts in entries.items():
        least = max(500, len(texts) / 100)
        frequent = {text: count for text, count in Counter(texts).items() if count >= least}
        place = {text: bucket_of(name, text, bits, buckets, names) for text in frequent}
        shared = [text for text in frequent if list(place.values()).count(place[text]) > 1]
        found = document["columns"][name]["collisions"]
        assert (found["values"], found["frequent"]) == (len(shared), len(frequent)), name
        assert found["buckets"] == {"v": indexes, "f": 1 << names}.get(name, buckets)
        assert found["share"] == pytest.approx(sum(frequent[text] for text in shared) / len(texts), abs=0.01)
        warned += [name] if shared else []
    assert [text.partition(":")[0] for text in warnings(document)] == warned


RANDOM = np.random.default_rng(7)


@pytest.mark.parametrize(("dtype", "count"), [
    *product((np.float32, np.int32), (0, 1, EXACT, EXACT + 1, 9_000, 12_000, 40_000)), (np.float32, 150_000),
    *(pytest.param(dtype, 1_000_000, marks=pytest.mark.full) for dtype in (np.float32, np.int32)),
])  # fmt: skip
def test_how_many_differ(dtype: type, count: int) -> None:
    values = RANDOM.permutation(np.repeat(np.arange(count).astype(dtype), 2))
    found = Distinct()
    for part in np.array_split(values, 7):
        found.add(part)
    assert found.is_exact == (count <= EXACT)
    assert found.count == count if found.is_exact else abs(found.count / count - 1) < 4 * DISTINCT_ERROR
    zeros = Distinct()
    zeros.add(np.array([0.0, -0.0], np.float32))
    assert zeros.count == 1, "a negative zero is no other value"


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_quantiles_mean_and_deviation(scale: float) -> None:
    drawn = np.concatenate([RANDOM.normal(3, 50, 50_000), np.zeros(500), RANDOM.exponential(7, 9_000)])
    values = drawn.astype(np.float32) * np.float32(scale)
    spread = Spread()
    for part in np.array_split(values, 11):
        spread.add(part)
    shares = [0, 0.01, 0.3, 0.5, 0.77, 0.999, 1]
    expected = np.quantile(values, shares, method="lower")
    for got, quantile in zip(spread.quantiles(shares), expected, strict=True):
        assert abs(got - quantile) <= 1.01 * QUANTILE_ERROR * abs(quantile)
    assert (spread.count, spread.least, spread.largest) == (len(values), values.min(), values.max())
    exact = values.astype(np.float64)
    assert np.isclose(spread.mean, exact.mean()) and np.isclose(spread.deviation, exact.std())
    edges = np.array([-40, -1, 0.5, 60]) * scale
    counted = np.bincount(np.searchsorted(edges, values, side="right"), minlength=5)
    assert np.abs(spread.histogram(edges) - counted).max() < 0.005 * len(values)
    assert spread.histogram(edges).sum() == len(values)


def test_drift_is_zero_of_the_same_and_grows() -> None:
    same, other = np.array([100, 200, 700]), np.array([300, 300, 400])
    assert stability_index(same, 3 * same) == 0
    expected = sum((b - a) * np.log(b / a) for a, b in zip(same / 1000, other / 1000, strict=True))
    assert np.isclose(stability_index(same, other), expected)
    assert stability_index(same, np.array([0, 0, 10])) > 0.25
