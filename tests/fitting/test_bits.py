"""Fixed runs have fixed bits, on every machine: training is compared with what it once gave.

A change that is meant to change them writes the file anew: `python tests/fitting/test_bits.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from looped import over

import streamtrain

GOLDEN = Path(__file__).parents[1] / "golden" / "bits.json"
ROWS = 1500
LABELS: dict[str, dict[str, Any]] = {
    "two": {"loss": "binary_cross_entropy", "role": {}},
    "three": {"loss": "softmax_cross_entropy", "role": {"classes": ["ash", "elm", "oak"]}},
    "number": {"loss": "mean_squared_error", "role": {}},
}
NETWORKS: dict[str, list[dict[str, Any]]] = {
    "plain": [{"dense": 8, "activation": "relu"}],
    "normed": [{"batch_norm": 0.001}, {"dense": 8, "activation": "gelu"}, {"dropout": 0.1}, {"layer_norm": 0.001}],
}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "clipped": {"name": "adam", "learning_rate": 0.01, "clip_norm": 1.0},
    "sparse": {"name": "ftrl", "learning_rate": 0.1},
}
# what changes a single worker's mean after the fold, so that the next round begins from another state than its own
CHANGED: dict[str, dict[str, dict[str, Any]]] = {
    "outer": {"train": {"averaging": {"name": "outer_nesterov"}}},
    "evicting": {"columns": {"colour": {"kind": "category", "vocabulary": {"capacity": 2}, "embed": 4}}},
}
RUNS = [
    *((label, "plain", "clipped", workers) for label in LABELS for workers in (1, 2, 4)),
    ("two", "normed", "clipped", 2),
    ("two", "plain", "sparse", 2),
    *(("two", "plain", changed, 1) for changed in CHANGED),
]


def tables(label: str, network: str, optimizer: str, workers: int) -> dict[str, Any]:
    document: dict[str, Any] = {
        "columns": {
            "a": {"kind": "number", "standardize": True},
            "b": {"kind": "number"},
            "colour": {"kind": "category", "buckets": 16, "embed": 4},
            "w": {"role": "weight"},
            "y": {"role": "label", **LABELS[label]["role"]},
        },
        "model": {"layers": NETWORKS[network], "loss": LABELS[label]["loss"]},
        "optimizer": OPTIMIZERS.get(optimizer, OPTIMIZERS["clipped"]),
        "train": {"batch_rows": 32, "averaging_frequency": 2, "workers": workers, "seed": 7},
    }
    for section, settings in CHANGED.get(optimizer, {}).items():
        document[section] |= settings
    return document


def records(label: str) -> Iterator[dict[str, Any]]:
    """Yields 7, 13 or 100 rows at a time, which no batch is a multiple of; made of whole numbers alone."""
    i = np.arange(ROWS, dtype=np.int64)
    a, b = (i * 7919) % 1009, (i * 104729) % 997 - 498
    score = 2 * a - 3 * b - 1000
    labels = {
        "two": (score > 0).astype(np.int64),
        "three": np.array(["ash", "elm", "oak"])[np.digitize(score, [-700, 700])],
        "number": score / 1024,
    }
    columns = {
        "a": a / 16,
        "b": b / 256,
        "colour": np.array(["red", "green", "blue", "grey"])[(i * i + i // 3) % 4],
        "w": 1.0 + i % 3,
        "y": labels[label],
    }
    first, sizes = 0, (7, 13, 100)
    while first < ROWS:
        end = first + sizes[first % 3]
        yield {name: cells[first:end] for name, cells in columns.items()}
        first = end


def bits(run: tuple[str, str, str, int]) -> str:
    return hashlib.sha256(streamtrain.fit(tables(*run), records(run[0])).payload).hexdigest()


def name(run: tuple[str, str, str, int]) -> str:
    return " ".join(map(str, run))


@over("run", RUNS, ids=name)
def test_a_fixed_run_has_its_bits(run: tuple[str, str, str, int]) -> None:
    assert bits(run) == json.loads(GOLDEN.read_text())[name(run)]


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({name(run): bits(run) for run in RUNS}, indent=1) + "\n")
