"""A job and its rows, for `fit`; programs of their own import it too."""

from __future__ import annotations

from typing import Any

import numpy as np

import streamtrain

TABLES: dict[str, Any] = {
    "columns": {
        "a": {"kind": "number", "standardize": True},
        "b": {"kind": "number"},
        "colour": {"kind": "category", "buckets": 16, "embed": 2},
        "w": {"role": "weight"},
        "y": {"role": "label"},
    },
    "records": {"format": "msgpack"},
    "model": {"layers": [{"dense": 8, "activation": "relu"}], "loss": "binary_cross_entropy"},
    "optimizer": {"name": "adam", "learning_rate": 0.01},
    "train": {"batch_rows": 64, "averaging_frequency": 3, "workers": 2, "round_interval": "off"},
}


def with_train(**settings: Any) -> dict[str, Any]:
    return {**TABLES, "train": {**TABLES["train"], **settings}}


def columns(rows: int, seed: int = 3) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    a, b = random.normal(2, 3, rows), random.normal(size=rows)
    return {
        "a": a,
        "b": b,
        "colour": random.choice(["red", "green", "blue"], rows),
        "w": 1.0 + np.arange(rows) % 3,
        "y": (a - 2 + 3 * b > 0).astype(np.int64),
    }


def dicts(rows: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(rows, row, strict=True)) for row in zip(*(cells.tolist() for cells in rows.values()), strict=True)]


def same_bits(one: streamtrain.Snapshot, other: streamtrain.Snapshot) -> bool:
    return one.parameters.keys() == other.parameters.keys() and all(
        np.array_equal(array, arrays[name])
        for mine, arrays in ((one.parameters, other.parameters), (one.statistics, other.statistics))
        for name, array in mine.items()
    )
